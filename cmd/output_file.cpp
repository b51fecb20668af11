#include "cmd/output_file.h"

#include "lib/base/text.h"

#include <fcntl.h>
#include <filesystem>
#include <ostream>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::cmd {
namespace {

Error is_there(const std::string& path) {
  return Error(ErrorCode::invalid_argument, printable(path) + " is there already (--force replaces it)");
}

Error is_input(const std::string& path) {
  return Error(ErrorCode::invalid_argument,
               printable(path) + " is one of the inputs, and they are not overwritten");
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Whether `path`, which need not be there, or what it leads to as a link, is in a directory, at any depth; by
// what the directories are, whatever their names.
bool lies_in(const std::string& path, const struct stat& directory) {
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::absolute(path, failed);
  for (std::filesystem::path at : {std::filesystem::weakly_canonical(whole.parent_path(), failed),
                                   std::filesystem::weakly_canonical(whole, failed).parent_path()})
    for (;; at = at.parent_path()) {
      struct stat info {};
      if (::stat(at.c_str(), &info) == 0 && is_same(info, directory)) return true;
      if (at == at.parent_path()) break;
    }
  return false;
}

}  // namespace

Result<std::unique_ptr<OutputFile>> OutputFile::open(Context& context, const std::string& path,
                                                     const std::vector<const Fd*>& inputs, IfThere if_there) {
  std::unique_ptr<OutputFile> output(new OutputFile(context));
  if (path == "-") return output;
  output->if_there_ = if_there;
  struct stat there {
  }, own{};
  if (::stat(repository_location(context).c_str(), &own) == 0 && lies_in(path, own))
    return Error(ErrorCode::invalid_argument,
                 printable(path) + " is in the repository, where only kin's own files are written");
  std::string place = path;
  if (if_there == IfThere::refuse && ::lstat(path.c_str(), &there) == 0) return is_there(path);
  if (::stat(path.c_str(), &there) == 0) {
    struct stat password {};
    if (::stat(context.options.password_file.c_str(), &password) == 0 && is_same(password, there))
      return is_input(path);
    for (const Fd* input : inputs) {
      struct stat info {};
      if (::fstat(input->get(), &info) == 0 && is_same(info, there)) return is_input(path);
    }
    if (!S_ISREG(there.st_mode))
      return Error(ErrorCode::invalid_argument, printable(path) + " is there, and is not a file");
    // What a link points to is replaced, not the link.
    std::error_code failed;
    const std::filesystem::path target = std::filesystem::canonical(path, failed);
    if (!failed) place = target.string();
  }
  // A page that others could not read is not shown to them by being made again.
  const bool replaces = S_ISREG(there.st_mode);
  std::string temporary = place + ".kin-XXXXXX";
  output->fd_ = Fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!output->fd_) return errno_error("cannot make", path);
  output->path_ = place;
  output->temporary_ = temporary;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(output->fd_.get(), replaces ? there.st_mode & 0777 : 0666 & ~mask) != 0)
    return errno_error("cannot make", path);
  return output;
}

Result<std::unique_ptr<OutputFile>> OutputFile::open_page(Context& context, const std::string& path,
                                                          std::vector<std::string> inputs) {
  struct stat entry {
  }, there{};
  if (path != "-" && ::lstat(path.c_str(), &entry) == 0) {  // a link that leads nowhere is there too
    const bool leads_somewhere = ::stat(path.c_str(), &there) == 0;
    for (const std::string& input : inputs) {
      struct stat info {};
      if (::stat(input.c_str(), &info) != 0) continue;
      if (leads_somewhere && is_same(info, there)) return is_input(path);
      if (S_ISDIR(info.st_mode) && lies_in(path, info))
        return Error(ErrorCode::invalid_argument,
                     fmt::format("{} is a file in {}, which is to be read, and is not overwritten",
                                 printable(path), printable(input)));
    }
  }
  return open(context, path, {});
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> OutputFile::write_bytes(ByteView bytes) {
  bytes_ += bytes.size();
  if (!is_stdout()) return write_all(fd_.get(), bytes, path_);
  context_.raw_out().write(reinterpret_cast<const char*>(bytes.data()),
                           static_cast<std::streamsize>(bytes.size()));
  return context_.still_heard();
}

Result<void> OutputFile::commit() {
  if (is_stdout()) {
    context_.raw_out().flush();
    return context_.still_heard();
  }
  // Before it takes the name: else a crash could leave an empty file where a whole one was.
  if (::fsync(fd_.get()) != 0) return errno_error("cannot write", path_);
  KIN_TRY(fd_.close(path_));
  if (if_there_ == IfThere::refuse) {
    // A link, unlike a rename, replaces nothing; some file systems have none.
    if (::link(temporary_.c_str(), path_.c_str()) == 0) return {};  // the destructor takes the other name
    if (errno == EEXIST) return is_there(path_);
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return errno_error("cannot make", path_);
  temporary_.clear();
  return {};
}

Result<void> choose_form(Context& context, bool csv, const std::string& html) {
  const bool page = html == "-";
  if ((context.options.json ? 1 : 0) + (csv ? 1 : 0) + (page ? 1 : 0) > 1)
    return Error(ErrorCode::invalid_argument,
                 "--json, --csv and --html - each want all of stdout: choose one");
  if (csv || page) context.options.quiet = true;
  return {};
}

}  // namespace kin::cmd
