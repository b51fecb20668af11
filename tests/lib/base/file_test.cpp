#include "lib/base/file.h"

#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_dir.h"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <limits>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace kin {
namespace {

using testing::code_of;
using testing::error_of;
using testing::require_ok;
using testing::TempDir;
using testing::value_of;

Fd create(const std::string& path) {
  return Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
}

void write_file(const std::string& path, ByteView bytes) {
  const Fd fd = create(path);
  REQUIRE(fd);
  require_ok(write_all(fd.get(), bytes, path));
}

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

}  // namespace

TEST_CASE("a descriptor is closed once, by its last owner", "[file]") {
  const TempDir directory;
  Fd first = create(directory / "first");
  Fd second = create(directory / "second");
  REQUIRE(first);
  REQUIRE(second);
  const int first_number = first.get(), second_number = second.get();

  first = std::move(second);
  CHECK_FALSE(is_open(first_number));
  CHECK(is_open(second_number));
  CHECK(first.get() == second_number);
  CHECK_FALSE(second);  // NOLINT(bugprone-use-after-move): what a moved-from Fd is, is the question

  require_ok(first.close("second"));
  CHECK_FALSE(first);
  CHECK_FALSE(is_open(second_number));
  {
    const Fd third = create(directory / "third");
    REQUIRE(is_open(third.get()));
  }
  CHECK_FALSE(is_open(second_number));  // which the third one was given again
}

TEST_CASE("closing what is not open is an error that names the file", "[file]") {
  Fd never;
  CHECK_FALSE(never);
  const Error error = error_of(never.close("/some/path"));
  CHECK(error.code() == ErrorCode::io);
  CHECK_THAT(error.message(), Catch::Contains("/some/path"));
}

TEST_CASE("errors say what, where and why, and print safely", "[file]") {
  CHECK(errno_error("cannot open", "/a/b", EACCES).message() == "cannot open /a/b: Permission denied");
  CHECK(errno_error("cannot open", "/a\n", EACCES).message() == "cannot open /a\\x0a: Permission denied");
  CHECK(errno_error("x", "y", EACCES).code() == ErrorCode::io);
  CHECK(errno_error("x", "y", ENOENT).code() == ErrorCode::not_found);
  CHECK(errno_error("x", "y", ENOSPC).code() == ErrorCode::no_space);
  CHECK(errno_error("x", "y", EDQUOT).code() == ErrorCode::no_space);
}

TEST_CASE("what is written reads back, in sequence and at an offset", "[file]") {
  const TempDir directory;
  const std::string path = directory / "file";
  const Bytes content = testing::random_bytes(4, 300'000);
  write_file(path, content);
  CHECK(equal(value_of(read_file(path, content.size())), content));

  const Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  Bytes part(1000);
  CHECK(value_of(read_up_to(fd.get(), part, path)) == 1000);
  CHECK(equal(part, ByteView(content).first(1000)));
  CHECK(value_of(read_up_to_at(fd.get(), part, 299'500, path)) == 500);  // the file ends
  CHECK(equal(ByteView(part).first(500), ByteView(content).last(500)));
  CHECK(value_of(read_up_to_at(fd.get(), part, 1 << 30, path)) == 0);

  require_ok(write_all_at(fd.get(), as_bytes("hello"), 299'998, path));
  const Bytes longer = value_of(read_file(path, 1 << 20));
  REQUIRE(longer.size() == 300'003);
  CHECK(as_text(ByteView(longer).last(5)) == "hello");
  CHECK(equal(ByteView(longer).first(299'998), ByteView(content).first(299'998)));
}

TEST_CASE("reading a file stops at its limit", "[file]") {
  const TempDir directory;
  const std::string path = directory / "file";
  // Sizes around the steps in which it is read, too.
  for (const std::size_t size : {0, 1, 65535, 65536, 65537, 196608, 196609}) {
    ::unlink(path.c_str());
    const Bytes content = testing::random_bytes(size, size);
    write_file(path, content);
    INFO(size);
    CHECK(equal(value_of(read_file(path, size)), content));
    if (size > 0) CHECK(code_of(read_file(path, size - 1)) == ErrorCode::io);
  }
  CHECK(code_of(read_file("/dev/zero", 1'000'000)) == ErrorCode::io);
}

TEST_CASE("a missing file is not found, and a directory is no file", "[file]") {
  const TempDir directory;
  const Error error = error_of(read_file(directory / "missing", 100));
  CHECK(error.code() == ErrorCode::not_found);
  CHECK_THAT(error.message(), Catch::Contains(directory / "missing"));
  CHECK(code_of(read_file(directory.path(), 100)) == ErrorCode::io);
}

TEST_CASE("a full disk is no_space, not just any error", "[file]") {
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  REQUIRE(full);
  CHECK(code_of(write_all(full.get(), as_bytes("x"), "/dev/full")) == ErrorCode::no_space);
  require_ok(write_all(full.get(), {}, "/dev/full"));
}

TEST_CASE("a descriptor that cannot be read or written is an error", "[file]") {
  const TempDir directory;
  const std::string path = directory / "file";
  write_file(path, as_bytes("content"));
  const Fd write_only(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  const Fd read_only(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  Bytes into(4);
  CHECK(code_of(read_up_to(write_only.get(), into, path)) == ErrorCode::io);
  CHECK(code_of(read_up_to_at(write_only.get(), into, 0, path)) == ErrorCode::io);
  CHECK(code_of(write_all(read_only.get(), into, path)) == ErrorCode::io);
  CHECK(code_of(write_all_at(read_only.get(), into, 0, path)) == ErrorCode::io);
}

TEST_CASE("a short read from a pipe is not taken for its end", "[file]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  const Bytes content = testing::random_bytes(5, 5000);  // less than a pipe holds, so one thread will do
  require_ok(write_all(writer.get(), ByteView(content).first(2000), "pipe"));
  require_ok(write_all(writer.get(), ByteView(content).subspan(2000), "pipe"));
  require_ok(writer.close("pipe"));
  Bytes into(6000);
  REQUIRE(value_of(read_up_to(reader.get(), into, "pipe")) == 5000);
  CHECK(equal(ByteView(into).first(5000), content));
}

TEST_CASE("directories are made with all that is missing above them", "[file]") {
  const TempDir directory;
  const std::string path = directory / "a/b/c";
  require_ok(make_directories(path, 0700));
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK(S_ISDIR(info.st_mode));
  CHECK((info.st_mode & 07777) == 0700);
  require_ok(make_directories(path, 0700));  // it is there already
  require_ok(make_directories(path + "/d/", 0700));
  CHECK(::access((path + "/d").c_str(), F_OK) == 0);
}

TEST_CASE("a file where a directory should be is an error", "[file]") {
  const TempDir directory;
  write_file(directory / "file", {});
  CHECK(code_of(make_directories(directory / "file", 0700)) == ErrorCode::io);
  CHECK(code_of(make_directories(directory / "file/below", 0700)) == ErrorCode::io);
}

TEST_CASE("a directory is listed whole and again, from one descriptor", "[file]") {
  const TempDir directory;
  for (const char* name : {"b", ".a", "...", "\xff"}) write_file(directory / name, {});
  const Fd fd(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int round = 0; round < 2; ++round) {
    const std::vector<std::string> names = value_of(list_directory(fd.get(), directory.path()));
    CHECK(std::set<std::string>(names.begin(), names.end()) ==
          std::set<std::string>{"...", ".a", "b", "\xff"});
    CHECK(names.size() == 4);
  }
  const Fd file(::open((directory / "b").c_str(), O_RDONLY | O_CLOEXEC));
  CHECK_THAT(error_of(list_directory(file.get(), "here")).message(), Catch::Contains("cannot list here"));
}

}  // namespace kin
