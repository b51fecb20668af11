// kin simhash: what simhash(1) of Debian does, with its options, files and output.
#include "cmd/context.h"
#include "lib/base/file.h"
#include "lib/base/ordered_stage.h"
#include "lib/base/text.h"
#include "lib/similarity/content_reader.h"
#include "lib/similarity/shingle_matrix.h"

#include <fcntl.h>
#include <ostream>
#include <unistd.h>

namespace kin::cmd {
namespace {

struct SimhashOptions {
  ShingleOptions shingles;
  std::string hash = "crc32";
  bool write = false, match = false, compare = false;
  std::vector<std::string> files;
};

Result<Shingleprint> hash_file(ShingleSampler& sampler, const std::string& path,
                               const std::stop_token& stop) {
  KIN_TRY_ASSIGN(const auto file, FileContent::open(path, stop));
  auto read = for_each_piece(*file, 0, [&](ByteView bytes, std::uint64_t) { sampler.add(bytes); });
  Shingleprint out = sampler.finish();
  KIN_TRY(std::move(read));
  return out;
}

Result<Shingleprint> hash_stdin(ShingleSampler& sampler, const std::stop_token& stop) {
  Bytes buffer(kContentPieceBytes);
  for (;;) {
    KIN_TRY_ASSIGN(const std::size_t size, read_pipe(STDIN_FILENO, buffer, "stdin", stop));
    if (size == 0) return sampler.finish();
    sampler.add(ByteView(buffer).first(size));
  }
}

Error too_short(const std::string& what, const SimhashOptions& options) {
  return Error(ErrorCode::invalid_argument,
               fmt::format("{}: not hashable, as it is shorter than a shingle of {} bytes", printable(what),
                           options.shingles.shingle_bytes));
}

class Simhash {
 public:
  Simhash(Context& context, const SimhashOptions& options) : context_(context), options_(options) {}

  Result<ExitCode> run() {
    if (options_.compare) return compare();
    if (options_.match) return match();
    if (options_.write) return write();
    return print();
  }

 private:
  // In their order, by as many threads as there are jobs.
  Result<void> hash_all(
      const std::function<Result<void>(const std::string& path, Result<Shingleprint> print)>& use);
  // Tells, and counts as skipped, what could not be read; nothing, if it could.
  bool is_skipped(const Result<Shingleprint>& print);
  Result<void> keep(const std::string& path, const Shingleprint& print);
  Result<ExitCode> print();
  Result<ExitCode> write();
  Result<ExitCode> match();
  Result<ExitCode> compare();
  ExitCode done() const { return skipped_ ? ExitCode::incomplete : ExitCode::ok; }

  Context& context_;
  const SimhashOptions& options_;
  bool skipped_ = false;
};

Result<void> Simhash::hash_all(
    const std::function<Result<void>(const std::string& path, Result<Shingleprint> print)>& use) {
  // Several files to a job: most are small, and to hand one over costs as much as to hash it.
  constexpr std::size_t kFilesPerJob = 16;
  using Prints = std::vector<Result<Shingleprint>>;
  using Stage = OrderedStage<std::size_t, Prints>;
  const std::size_t files = options_.files.size();
  Stage stage(context_.jobs(), 8 << 20, [&]() -> Stage::Worker {
    const auto sampler = std::make_shared<ShingleSampler>(options_.shingles);
    return [this, sampler, files](std::size_t first, const Stage::Emit& emit) {
      Prints prints;
      for (std::size_t i = first; i < std::min(first + kFilesPerJob, files); ++i)
        prints.push_back(hash_file(*sampler, options_.files[i], context_.stop()));
      emit(std::move(prints), 4 * options_.shingles.features * kFilesPerJob);
    };
  });
  std::size_t submitted = 0;
  const auto submit = [&] {
    if (submitted < files && stage.submit(submitted)) submitted += kFilesPerJob;
    if (submitted >= files) stage.finish();
  };
  // As many jobs ahead as the stage takes without making this thread wait, which also takes the items.
  const std::size_t ahead = (2 * context_.jobs() + 2) * kFilesPerJob;
  do submit();
  while (submitted < std::min(files, ahead));
  for (std::size_t next = 0; next < files;) {
    if (context_.stop().stop_requested()) return interrupted();
    auto prints = stage.next();
    if (!prints) break;
    if (context_.stop().stop_requested()) return interrupted();
    submit();
    for (Result<Shingleprint>& print : *prints) KIN_TRY(use(options_.files[next++], std::move(print)));
  }
  return stage.result();
}

bool Simhash::is_skipped(const Result<Shingleprint>& print) {
  if (print) return false;
  context_.warn(print.error().message());
  return skipped_ = true;
}

Result<ExitCode> Simhash::print() {
  if (options_.files.size() > 1)
    return Error(ErrorCode::invalid_argument, "simhash: one file, or -w or -m for several");
  ShingleSampler sampler(options_.shingles);
  const bool from_stdin = options_.files.empty();
  KIN_TRY_ASSIGN(const Shingleprint print, from_stdin
                                               ? hash_stdin(sampler, context_.stop())
                                               : hash_file(sampler, options_.files[0], context_.stop()));
  if (print.features.empty()) return too_short(from_stdin ? "stdin" : options_.files[0], options_);
  if (::isatty(STDOUT_FILENO) != 0)
    return Error(ErrorCode::invalid_argument,
                 "a hash is nothing for a terminal: send it to a file or a pipe");
  context_.raw_out() << as_text(encode_shingleprint(print));
  KIN_TRY(context_.still_heard());
  return ExitCode::ok;
}

Result<void> Simhash::keep(const std::string& path, const Shingleprint& print) {
  const std::string name = path + ".sim";
  Fd fd(::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
  if (!fd) return errno_error("cannot write", name);
  KIN_TRY(write_all(fd.get(), encode_shingleprint(print), name));
  return fd.close(name);
}

Result<ExitCode> Simhash::write() {
  KIN_TRY(hash_all([&](const std::string& path, Result<Shingleprint> print) -> Result<void> {
    if (is_skipped(print)) return {};
    if (print->features.empty()) {
      context_.warn(printable(path) + ": warning: not hashed");
      return {};
    }
    if (const auto kept = keep(path, *print); !kept) {
      if (kept.error().code() == ErrorCode::no_space) return kept.error();
      context_.warn(kept.error().message());
      skipped_ = true;
    }
    return {};
  }));
  return done();
}

Result<ExitCode> Simhash::match() {
  std::vector<Shingleprint> prints;
  KIN_TRY(hash_all([&](const std::string&, Result<Shingleprint> print) -> Result<void> {
    prints.push_back(is_skipped(print) ? Shingleprint() : *std::move(print));
    return {};
  }));
  std::vector<std::string> names = options_.files;
  if (::isatty(STDOUT_FILENO) != 0)  // which a name must not control
    for (std::string& name : names) name = printable(name);
  write_shingle_matrix(names, prints, [&](std::string_view text) {
    context_.raw_out() << text;
    return context_.still_heard().has_value();
  });
  KIN_TRY(context_.still_heard());
  return done();
}

Result<ExitCode> Simhash::compare() {
  if (options_.files.size() != 2)
    return Error(ErrorCode::invalid_argument, "simhash -c compares two hash files");
  Shingleprint prints[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string& path = options_.files[i];
    KIN_TRY_ASSIGN(const auto file, FileContent::open(path));  // a FIFO would be waited for
    Bytes bytes(kMostSimFileBytes + 4);                        // one feature more shows that it is longer
    KIN_TRY_ASSIGN(const std::size_t size, file->read_at(0, bytes));
    bytes.resize(size);
    auto print = decode_shingleprint(bytes);
    if (!print) return std::move(print).error().context(printable(path));
    prints[i] = *std::move(print);
  }
  if (prints[0].hash != prints[1].hash)
    return Error(ErrorCode::invalid_argument, "one hash file is by CRC-32 and one by Rabin fingerprints");
  if (prints[0].shingle_bytes != prints[1].shingle_bytes)
    return Error(ErrorCode::invalid_argument, "shingle size mismatch");
  const double score = shingle_score(shingle_matches(prints[0], prints[1]), prints[0].features.size(),
                                     prints[1].features.size());
  context_.print_always(shingle_score_text(score));
  context_.json("similarity", {{"score", score}});
  return ExitCode::ok;
}

Action define_simhash(CLI::App& app) {
  auto options = std::make_shared<SimhashOptions>();
  app.add_option("FILE", options->files, "files to hash (none: stdin), or with -c two hash files");
  app.add_option("-s,--shingle-size", options->shingles.shingle_bytes, "bytes of a shingle (default 8)")
      ->check(CLI::Range(kLeastShingleBytes, kMostShingleBytes));
  app.add_option("-f,--features", options->shingles.features, "how many hashes are kept (default 128)")
      ->check(CLI::Range(1U, kMostShingleFeatures));
  CLI::Option* const write =
      app.add_flag("-w,--write", options->write, "write the hash of each file to FILE.sim");
  CLI::Option* const match =
      app.add_flag("-m,--match", options->match, "print a matrix of the files' similarity")->excludes(write);
  app.add_flag("-c,--compare", options->compare, "print the similarity of two hash files")
      ->excludes(write)
      ->excludes(match);
  app.add_option("--hash", options->hash, "crc32, as simhash(1), or rabin (default crc32)")
      ->check(CLI::IsMember({"crc32", "rabin"}));
  return [options](Context& context) {
    if (options->hash == "rabin") options->shingles.hash = ShingleHash::rabin;
    return Simhash(context, *options).run();
  };
}

}  // namespace

extern const Command kSimhash{"simhash", "similarity hashes of files, as simhash(1) of Debian",
                              define_simhash};

}  // namespace kin::cmd
