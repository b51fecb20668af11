#include "lib/similarity/content_reader.h"

#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_dir.h"

#include <fstream>
#include <sys/stat.h>

namespace kin {

TEST_CASE("pieces overlap as asked, and make up the content", "[content_reader]") {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{40}, kContentPieceBytes - 1,
                                 kContentPieceBytes, kContentPieceBytes + 1, 3 * kContentPieceBytes + 17}) {
    const Bytes content = testing::random_bytes(size, size);
    MemoryContent reader(content);
    Bytes joined;
    std::size_t pieces = 0;
    testing::require_ok(for_each_piece(reader, 49, [&](ByteView bytes, std::uint64_t offset) {
      CHECK(offset + (pieces == 0 ? 0 : 49) == joined.size());
      append(joined, pieces == 0 ? bytes : bytes.subspan(49));
      ++pieces;
    }));
    CHECK(joined == content);
    CHECK((pieces > 0) == (size > 0));
  }
}

TEST_CASE("what is no regular file is refused without waiting for it", "[content_reader]") {
  const testing::TempDir directory;
  const std::string fifo = directory / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(testing::error_of(FileContent::open(fifo)).message() ==
        fifo + " is a FIFO, and only files are compared");
  CHECK(testing::code_of(FileContent::open("/dev/zero")) == ErrorCode::invalid_argument);
  CHECK(testing::code_of(FileContent::open(directory.path())) == ErrorCode::invalid_argument);
  CHECK(testing::code_of(FileContent::open(directory / "none")) == ErrorCode::not_found);
}

TEST_CASE("a file is read where asked, and not beyond its end", "[content_reader]") {
  const testing::TempDir directory;
  std::ofstream(directory / "file") << "0123456789";
  std::stop_source stop;
  const auto stopped = testing::value_of(FileContent::open(directory / "file", stop.get_token()));
  Bytes some(10);
  CHECK(stopped->read_at(0, some).has_value());
  stop.request_stop();
  CHECK(testing::code_of(stopped->read_at(0, some)) == ErrorCode::cancelled);
  const auto file = testing::value_of(FileContent::open(directory / "file"));
  CHECK(file->size() == 10);
  Bytes into(6);
  CHECK(testing::value_of(file->read_at(7, into)) == 3);
  CHECK(as_text(ByteView(into).first(3)) == "789");
  CHECK(testing::value_of(file->read_at(10, into)) == 0);
}

}  // namespace kin
