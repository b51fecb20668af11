// Archives of real programs, read as kin import reads them; and damaged ones, of which each byte that is
// given is either right or comes with an error.
#include "formats/archive_reader.h"

#include "formats/gunzip_source.h"
#include "tests/support/opened_container.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <fcntl.h>

using namespace kin;
using namespace kin::testing;

namespace {

struct Read {
  std::map<std::string, Bytes> files;  // by path, with zeros for holes
  std::map<std::string, std::string> links, symlinks, users;
  std::uint64_t holes = 0;
  std::vector<std::string> warnings;
  std::optional<ErrorCode> error;
  std::string message;
};

Read read_archive(const std::string& path) {
  Read out;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  formats::ArchiveReader archive(fd.get(), "the archive",
                                 [&](const std::string& warning) { out.warnings.push_back(warning); }, {});
  const auto read = [&]() -> Result<void> {
    for (;;) {
      KIN_TRY_ASSIGN(const std::optional<SourceEntry> entry, archive.next());
      if (!entry) return {};
      if (entry->link_to) out.links[entry->path] = *entry->link_to;
      if (entry->node.type == NodeType::symlink) out.symlinks[entry->path] = entry->node.target;
      out.users[entry->path] = entry->node.user;
      if (entry->node.type != NodeType::file) continue;
      Bytes content;
      for (;;) {
        KIN_TRY_ASSIGN(const std::optional<std::uint64_t> run, archive.next_run());
        const std::uint64_t begin = run.value_or(archive.end());
        if (begin > (64 << 20)) return Error(ErrorCode::unsupported, "too large for this test");
        if (begin > content.size()) out.holes += begin - content.size();
        content.resize(begin);
        if (!run) break;
        Bytes buffer(1000);
        for (std::size_t got = buffer.size(); got == buffer.size();) {
          KIN_TRY_ASSIGN(got, archive.read(buffer));
          append(content, ByteView(buffer).first(got));
        }
      }
      if (!entry->link_to) out.files[entry->path] = content;
    }
  };
  if (auto done = read(); !done) {
    out.error = done.error().code();
    out.message = done.error().message();
  }
  return out;
}

}  // namespace

TEST_CASE("archives of real programs give what went into them", "[archive_reader]") {
  TempDir dir;
  const Bytes one = text_like(1, 300'000), two = random_bytes(2, 5'000);
  write_bytes(dir / "one", one);
  write_bytes(dir / "two", two);
  run_in(dir,
         "mkdir d && mv two d/ && ln one d/link && ln -s one d/symbolic && truncate -s 2M d/sparse && echo x "
         ">>d/sparse");
  for (const char* make :
       {"tar -cf x one d", "tar --format=gnu -Scf x one d", "tar --format=posix -Scf x one d",
        "tar --format=ustar -czf x one d", "tar --format=v7 -cf x one d", "tar -cjf x one d",
        "tar -cJf x one d", "tar -c one d | zstd -q >x", "(tar -c one d | gzip; printf garbage) >x",
        "zip -qry x.zip one d && mv x.zip x", "7z a -snl x.7z one d >/dev/null && mv x.7z x"}) {
    INFO(make);
    run_in(dir, std::string("rm -f x && ") + make);
    const Read read = read_archive(dir / "x");
    INFO(read.message);
    CHECK_FALSE(read.error);
    CHECK(read.files.at("one") == one);
    CHECK(read.files.at("d/two") == two);
    CHECK(read.files.at("d/sparse").size() == (2 << 20) + 2);
    const bool tar = std::string(make).find("tar") != std::string::npos;
    if (tar) CHECK(read.links.at("d/link") == "one");
    if (!tar) CHECK(read.files.at("d/link") == one);
    CHECK((read.holes > 0) == (std::string(make).find("-Scf") != std::string::npos));
  }
}

TEST_CASE("names in archives are bytes, and no two that differ become one", "[archive_reader]") {
  TempDir dir;
  // The same to the eye, of one character and of two; an angstrom sign, which stands for a letter; one of
  // four bytes.
  const std::string composed = "\xc3\xa9", apart = "e\xcc\x81", sign = "\xe2\x84\xab",
                    face = "\xf0\x9f\x98\x80" + apart;
  run_in(dir, "mkdir d");
  for (const std::string& name : {composed, apart, sign, face})
    write_bytes(dir / ("d/" + name), as_bytes(name));
  run_in(dir, "cd d && ln -s e$(printf '\\314\\201') s");
  // Info-ZIP does not mark names as UTF-8; Python and 7z do, and some have them a second time in a field.
  const std::string python =
      "import os, struct, sys, zipfile, zlib\n"
      "z = zipfile.ZipFile('x', 'w')\n"
      "for n in sorted(os.listdir('d')):\n"
      "  i = zipfile.ZipInfo('d/' + n)\n"
      "  i.create_system = 3\n"
      "  i.external_attr = (0o120777 if n == 's' else 0o100644) << 16\n"
      "  i.flag_bits |= 0x800\n"
      "  b = i.filename.encode()\n"
      "  if sys.argv[1:]: i.extra = struct.pack('<HHBI', 0x7075, 5 + len(b), 1, zlib.crc32(b)) + b\n"
      "  z.writestr(i, 'e\\u0301' if n == 's' else n)\n"
      "z.close()\n";
  write_bytes(dir / "make.py", as_bytes(python));
  for (const char* make :
       {"tar --format=posix -cf x d", "tar --format=gnu -cf x d", "tar --format=ustar -czf x d",
        "find d | cpio --quiet -o -H newc >x", "zip -qry x.zip d && mv x.zip x", "python3 -X utf8 make.py",
        "python3 -X utf8 make.py twice",
        "printf before >x.zip && python3 -X utf8 make.py && cat x >>x.zip && mv x.zip x",
        "7z a -snl x.7z d >/dev/null && mv x.7z x", "7z a -snl -mhc=off x.7z d >/dev/null && mv x.7z x",
        "7z a -snl -m0=ppmd -ms=off x.7z d >/dev/null && mv x.7z x",
        "7z a -tzip -snl x.zip d >/dev/null && mv x.zip x",
        "genisoimage -quiet -R -graft-points -o x d/=d"}) {
    INFO(make);
    run_in(dir, std::string("rm -f x x.* && ") + make);
    const Read read = read_archive(dir / "x");
    INFO(read.message);
    CHECK_FALSE(read.error);
    CHECK(read.warnings.empty());
    for (const std::string& name : {composed, apart, sign, face}) {
      INFO(name);
      REQUIRE(read.files.contains("d/" + name));
      CHECK(equal(read.files.at("d/" + name), as_bytes(name)));
    }
    CHECK(read.symlinks.at("d/s") == apart);
  }
}

TEST_CASE("names in tar need not be UTF-8, nor those of links and owners", "[archive_reader]") {
  TempDir dir;
  run_in(dir,
         "mkdir d && cd d && name=$(printf 'a\\377') && echo x >$name && ln $name hard$name && ln -s to$name "
         "soft$name");
  for (const char* format : {"posix", "gnu", "ustar"}) {
    INFO(format);
    run_in(dir, fmt::format("tar --format={} --owner=$(printf 'e\\314\\201') -cf x d", format));
    const Read read = read_archive(dir / "x");
    CHECK_FALSE(read.error);
    CHECK(read.warnings.empty());
    REQUIRE(read.links.size() == 1);
    const bool first = read.links.contains("d/a\xff");  // whichever tar saw first
    CHECK(read.links.begin()->second == (first ? "d/harda\xff" : "d/a\xff"));
    CHECK(read.symlinks.at("d/softa\xff") == "toa\xff");
    CHECK(read.users.at("d/a\xff") == "e\xcc\x81");
  }
}

TEST_CASE("names that lead out of an archive end its import, and absolute ones lose their slash",
          "[archive_reader]") {
  TempDir dir;
  write_bytes(dir / "one", text_like(1, 100));
  run_in(dir,
         "tar -P --transform 's,^,a/../../,' -cf out.tar one && tar -P --transform 's,^,/b/./,' -cf "
         "absolute.tar one");
  const Read out = read_archive(dir / "out.tar");
  CHECK(out.error == ErrorCode::unsupported);
  CHECK(out.message.find("a/../../one") != std::string::npos);
  CHECK(read_archive(dir / "absolute.tar").files.contains("b/one"));
}

TEST_CASE("what is no archive, encrypted or cut off is refused", "[archive_reader]") {
  TempDir dir;
  write_bytes(dir / "one", text_like(1, 5'000));
  write_bytes(dir / "empty", {});
  run_in(dir,
         "zip -q -P secret e.zip one; 7z a -psecret e.7z one; 7z a -psecret -mhe=on h.7z one; gzip -k one;"
         "zip -q whole.zip one; bzip2 -k one; tar -cjf b.tbz one; head -c -30 whole.zip >cut.zip; tar -czf "
         "a.tgz one; head -c -5 a.tgz >cut.tgz;"
         "head -c 500 a.tgz >short.tgz; tar -cf a.tar one; head -c 3000 a.tar >cut.tar; head -c 100 b.tbz "
         ">cut.tbz;"
         "echo '#mtree' >m; echo './one type=file' >>m");
  for (const char* name : {"one", "empty", "e.zip", "e.7z", "h.7z", "one.gz", "one.bz2", "m"}) {
    INFO(name);
    CHECK(read_archive(dir / name).error == ErrorCode::unsupported);
  }
  for (const char* name : {"cut.tgz", "short.tgz", "cut.tar", "cut.zip", "cut.tbz"}) {
    INFO(name);
    CHECK(read_archive(dir / name).error == ErrorCode::corrupt);
  }
}

TEST_CASE("a gzip file that differs in any byte gives what it held, or an error", "[archive_reader]") {
  TempDir dir;
  write_bytes(dir / "one", text_like(1, 400));
  write_bytes(dir / "two", text_like(2, 90));
  run_in(dir, "gzip -n <one >x && gzip -n <two >>x");
  const Bytes whole = read_bytes(dir / "x");
  Bytes plain = read_bytes(dir / "one");
  const std::size_t first_size = plain.size();
  append(plain, read_bytes(dir / "two"));
  const auto unpacked = [](Bytes bytes) -> Result<Bytes> {
    MemorySource source(std::move(bytes));
    formats::GunzipSource gunzip(source);
    Bytes out(100'000);
    KIN_TRY_ASSIGN(const std::size_t got, gunzip.read(out));
    out.resize(got);
    return out;
  };
  CHECK(value_of(unpacked(whole)) == plain);
  std::size_t first_member = 0;
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const auto got = unpacked(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut)));
    if (!got) continue;
    // Only where a member ends, or in the first bytes of the next, does it look whole.
    CHECK(got->size() == first_size);
    if (first_member == 0) first_member = cut;
    CHECK(cut < first_member + 3);
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Bytes changed = whole;
    changed[at] ^= 0xff;
    const auto got = unpacked(changed);
    if (!got || *got == plain) continue;
    // The start of the second member: then it is garbage behind the first.
    CHECK(got->size() == first_size);
    CHECK((at >= first_member && at < first_member + 3));
  }
}

TEST_CASE("small archives with any byte changed, or cut anywhere, do no harm", "[archive_reader]") {
  TempDir dir;
  write_bytes(dir / "one", text_like(1, 60));
  run_in(dir,
         "ln one two && tar --format=ustar -b1 -cf a one two && zip -qX b.zip one && mv b.zip b && 7z a c.7z "
         "one >/dev/null && mv c.7z c && head -c 1200 a >a2 && mv a2 a");
  // Names that are marked, and a header that is compressed.
  run_in(
      dir,
      "mkdir n && cd n && for i in 1 2 3 4 5 6 7 8; do ln ../one $(printf 'e\\314\\201')$i; done && "
      "7z a ../e.7z . >/dev/null && mv ../e.7z ../e && 7z a -tzip ../d.zip *[12] >/dev/null && mv ../d.zip "
      "../d");
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    const Bytes whole = read_bytes(dir / name);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      Bytes changed = whole;
      changed[at] ^= 0xff;
      write_bytes(dir / "changed", changed);
      static_cast<void>(read_archive(dir / "changed"));
      changed.resize(at);
      write_bytes(dir / "changed", changed);
      static_cast<void>(read_archive(dir / "changed"));
    }
  }
}
