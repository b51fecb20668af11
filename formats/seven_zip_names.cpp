// An archive ends in a header, which has the names. Mostly that is compressed, and the archive then ends in a
// description of the stream that it is in, just as the header itself describes those of files. So libarchive
// can be had to decompress it: it is given the same archive, with another header at its end, by which that
// stream is the content of a file. That is less than a decoder for each method that a header may have.
#include "formats/seven_zip_names.h"

#include "formats/checksums.h"
#include "formats/fields.h"
#include "lib/base/file.h"
#include "lib/base/wire.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <unistd.h>

namespace kin::formats {
namespace {

constexpr std::string_view kSignature = "7z\xBC\xAF\x27\x1C";
constexpr std::size_t kStartBytes = 32;
constexpr std::size_t kMostHeaderBytes = 64 << 20;  // else the names are as libarchive tells them
// For what an encoded header is decoded with: it is a claim, and libarchive takes it at its word.
constexpr std::uint64_t kMostTableBytes = 64 << 20;
constexpr std::uint64_t kMostEntries = 100'000'000;  // libarchive's

enum Id : std::uint8_t {
  end_id = 0x00,
  header_id = 0x01,
  archive_properties_id = 0x02,
  main_streams_id = 0x04,
  files_id = 0x05,
  pack_id = 0x06,
  unpack_id = 0x07,
  substreams_id = 0x08,
  size_id = 0x09,
  crc_id = 0x0a,
  folder_id = 0x0b,
  unpack_size_id = 0x0c,
  substream_count_id = 0x0d,
  name_id = 0x11,
  encoded_header_id = 0x17,
};

// As many bytes follow as the first has ones at its top; its other bits are the highest.
std::uint64_t number(WireReader& in) {
  const std::uint8_t first = in.u8();
  const int more = std::countl_one(first);
  const std::uint64_t low = little_endian(in.raw(static_cast<std::size_t>(more)));
  if (in.failed()) return 0;
  return more >= 7 ? low : low | static_cast<std::uint64_t>(first & (0x7f >> more)) << 8 * more;
}

// Of things that take a byte each, or more.
std::uint64_t count(WireReader& in) {
  const std::uint64_t counted = number(in);
  if (counted > in.left()) in.fail();
  return in.failed() ? 0 : counted;
}

void skip_numbers(WireReader& in, std::uint64_t how_many) {
  for (std::uint64_t i = 0; i < how_many && !in.failed(); ++i) number(in);
}

// For each of these things whether it has a checksum, and those checksums.
void skip_digests(WireReader& in, std::uint64_t things, std::vector<bool>* defined) {
  const bool all = in.u8() != 0;
  std::uint64_t digests = things;
  if (defined != nullptr) defined->assign(things, true);
  if (!all) {
    const ByteView bits = in.raw((things + 7) / 8);
    if (in.failed()) return;
    digests = 0;
    for (std::uint64_t i = 0; i < things; ++i) {
      const bool has = (bits[i / 8] & (0x80 >> i % 8)) != 0;
      digests += has ? 1 : 0;
      if (defined != nullptr) (*defined)[i] = has;
    }
  }
  in.raw(4 * digests);
}

std::uint32_t crc32_of(ByteView bytes) {
  Crc32 sum;
  sum.add(bytes);
  return sum.value();
}

// What a coder says that its decoder has to hold: the dictionary of LZMA and LZMA2, the memory of PPMd.
std::uint64_t claimed_table_bytes(ByteView method, ByteView properties) {
  const std::string_view id = as_text(method);
  if ((id == "\x03\x01\x01" || id == "\x03\x04\x01") && properties.size() >= 5)
    return little_endian(properties.subspan(1, 4));
  if (id != "\x21" || properties.empty()) return 0;
  const unsigned size = properties[0];
  return size >= 40 ? UINT32_MAX : std::uint64_t{2 | (size & 1)} << (size / 2 + 11);
}

// How many streams come out of it. `table_bytes` gets the most that any decoder of it is said to need.
std::uint64_t skip_folder(WireReader& in, std::uint64_t& table_bytes) {
  const std::uint64_t coders = count(in);
  std::uint64_t inputs = 0, outputs = 0;
  for (std::uint64_t i = 0; i < coders && !in.failed(); ++i) {
    const std::uint8_t flags = in.u8();
    const ByteView method = in.raw(flags & 0xf);
    const bool simple = (flags & 0x10) == 0;
    inputs += simple ? 1 : count(in);
    outputs += simple ? 1 : count(in);
    const ByteView properties = (flags & 0x20) != 0 ? in.raw(count(in)) : ByteView();
    table_bytes = std::max(table_bytes, claimed_table_bytes(method, properties));
  }
  if (outputs == 0 || inputs < outputs - 1) in.fail();
  if (in.failed()) return 0;
  const std::uint64_t bound = outputs - 1, packed = inputs - bound;
  skip_numbers(in, 2 * bound + (packed == 1 ? 0 : packed));
  return outputs;
}

// Whether it tells how streams make files; else each makes one.
bool skip_streams(WireReader& in, std::uint64_t& table_bytes) {
  std::uint8_t id = in.u8();
  if (id == pack_id) {
    number(in);  // where they are
    const std::uint64_t streams = count(in);
    if ((id = in.u8()) == size_id) {
      skip_numbers(in, streams);
      id = in.u8();
    }
    if (id == crc_id) {
      skip_digests(in, streams, nullptr);
      id = in.u8();
    }
    if (id != end_id) in.fail();
    id = in.u8();
  }
  std::uint64_t folders = 0;
  std::vector<bool> has_digest;
  if (id == unpack_id) {
    if (in.u8() != folder_id) in.fail();
    folders = count(in);
    if (in.u8() != 0) in.fail();  // elsewhere: nobody writes that
    std::uint64_t outputs = 0;
    for (std::uint64_t i = 0; i < folders && !in.failed(); ++i) outputs += skip_folder(in, table_bytes);
    if (in.u8() != unpack_size_id) in.fail();
    skip_numbers(in, outputs);
    has_digest.assign(in.failed() ? 0 : folders, false);
    if ((id = in.u8()) == crc_id) {
      skip_digests(in, in.failed() ? 0 : folders, &has_digest);
      id = in.u8();
    }
    if (id != end_id) in.fail();
    id = in.u8();
  }
  const bool tells_files = id == substreams_id;
  if (tells_files && !in.failed()) {
    std::vector<std::uint64_t> streams(folders, 1);
    if ((id = in.u8()) == substream_count_id) {
      for (std::uint64_t& of_folder : streams) of_folder = number(in);
      id = in.u8();
    }
    std::uint64_t sizes = 0, digests = 0;
    for (std::uint64_t i = 0; i < folders; ++i) {
      if (streams[i] > kMostEntries) in.fail();
      if (in.failed()) return false;
      sizes += streams[i] == 0 ? 0 : streams[i] - 1;
      if (streams[i] != 1 || !has_digest[i]) digests += streams[i];
    }
    if (id == size_id) {
      skip_numbers(in, sizes);
      id = in.u8();
    }
    if (id == crc_id) {
      if (digests / 8 > in.left()) in.fail();
      skip_digests(in, in.failed() ? 0 : digests, nullptr);
      id = in.u8();
    }
    if (id != end_id) in.fail();
    id = in.u8();
  }
  if (id != end_id) in.fail();
  return tells_files;
}

// The names of a header; empty if it has none that can be read.
Bytes names_in(ByteView header) {
  WireReader in(header);
  if (in.u8() != header_id) return {};
  std::uint8_t id = in.u8();
  if (id == archive_properties_id) {
    while (in.u8() != end_id && !in.failed()) in.raw(count(in));
    id = in.u8();
  }
  if (id == main_streams_id) {
    std::uint64_t ignored = 0;  // of the files: not to be decoded here
    skip_streams(in, ignored);
    id = in.u8();
  }
  if (in.failed() || id != files_id) return {};
  number(in);  // how many
  for (;;) {
    id = in.u8();
    if (in.failed() || id == end_id) return {};
    const ByteView property = in.raw(count(in));
    if (in.failed()) return {};
    if (id != name_id) continue;
    if (property.empty() || property[0] != 0) return {};
    return {property.begin() + 1, property.end()};
  }
}

void append_number(Bytes& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(value >> 8 * i));
}

// The archive with another start, and something behind its end.
struct Disguised {
  int fd;
  std::uint64_t file_bytes;
  Bytes start, behind;
  std::uint64_t position = 0;
  Bytes buffer = Bytes(64 << 10);

  std::uint64_t size() const { return file_bytes + behind.size(); }

  la_ssize_t read(const void** bytes) {
    *bytes = buffer.data();
    std::size_t got = 0;
    if (position < file_bytes) {
      const std::size_t most = std::min<std::uint64_t>(buffer.size(), file_bytes - position);
      const auto done = read_up_to_at(fd, std::span(buffer).first(most), position, "");
      if (!done) return -1;
      got = *done;
      for (std::size_t i = position; i < start.size() && i - position < got; ++i)
        buffer[i - position] = start[i];
    } else if (position < size()) {
      const ByteView left = ByteView(behind).subspan(position - file_bytes);
      got = std::min(left.size(), buffer.size());
      std::copy_n(left.begin(), got, buffer.begin());
    }
    position += got;
    return static_cast<la_ssize_t>(got);
  }

  la_int64_t seek(la_int64_t offset, int whence) {
    const std::uint64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? position : size();
    position = std::min(from + static_cast<std::uint64_t>(offset), size());
    return static_cast<la_int64_t>(position);
  }
};

// What the stream holds that is described there; as far as it can be read.
Bytes unpacked(int fd, std::uint64_t file_bytes, ByteView streams) {
  WireReader in(streams);
  std::uint64_t table_bytes = 0;
  const bool tells_files = skip_streams(in, table_bytes);
  if (in.failed() || table_bytes > kMostTableBytes) return {};
  streams = streams.first(in.position() - 1);  // without the end
  Disguised file{fd, file_bytes, {}, {}};
  file.behind = {header_id, main_streams_id};
  append(file.behind, streams);
  if (!tells_files) append(file.behind, Bytes{substreams_id, end_id});
  file.behind.push_back(end_id);
  append(file.behind, Bytes{files_id, 1, name_id, 5, 0, 'h', 0, 0, 0, end_id, end_id});  // one, named "h"
  Bytes fields;
  append_number(fields, file_bytes - kStartBytes, 8);
  append_number(fields, file.behind.size(), 8);
  append_number(fields, crc32_of(file.behind), 4);
  append(file.start, as_bytes(kSignature));
  append_number(file.start, 0x0400, 2);  // the version
  append_number(file.start, crc32_of(fields), 4);
  append(file.start, fields);

  const std::unique_ptr<struct archive, int (*)(struct archive*)> archive(archive_read_new(),
                                                                          archive_read_free);
  archive_read_support_format_7zip(archive.get());
  archive_read_set_callback_data(archive.get(), &file);
  archive_read_set_read_callback(archive.get(), [](struct archive*, void* context, const void** bytes) {
    return static_cast<Disguised*>(context)->read(bytes);
  });
  archive_read_set_seek_callback(archive.get(),
                                 [](struct archive*, void* context, la_int64_t offset, int whence) {
                                   return static_cast<Disguised*>(context)->seek(offset, whence);
                                 });
  archive_entry* entry = nullptr;
  Bytes out;
  if (archive_read_open1(archive.get()) != ARCHIVE_OK) return out;
  if (archive_read_next_header(archive.get(), &entry) != ARCHIVE_OK) return out;
  for (;;) {
    const void* bytes = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    if (archive_read_data_block(archive.get(), &bytes, &size, &offset) != ARCHIVE_OK) return out;
    if (size > kMostHeaderBytes - out.size()) return {};
    append(out, {static_cast<const std::uint8_t*>(bytes), size});
  }
}

}  // namespace

SevenZipNames SevenZipNames::read(int fd, std::uint64_t file_bytes) {
  const SevenZipNames none{Bytes()};
  Bytes start(kStartBytes);
  const auto got = read_up_to_at(fd, start, 0, "");
  if (!got || *got != start.size() || !as_text(start).starts_with(kSignature)) return none;
  const std::uint64_t offset = little_endian(ByteView(start).subspan(12, 8));
  const std::uint64_t size = little_endian(ByteView(start).subspan(20, 8));
  const std::uint64_t most = file_bytes - kStartBytes;
  if (offset > most || size > most - offset || size == 0 || size > kMostHeaderBytes) return none;
  Bytes header(size);
  const auto all = read_up_to_at(fd, header, kStartBytes + offset, "");
  if (!all || *all != size) return none;
  if (header[0] == encoded_header_id) header = unpacked(fd, file_bytes, ByteView(header).subspan(1));
  return SevenZipNames(names_in(header));
}

std::optional<std::string> SevenZipNames::next() {
  std::string out;
  bool valid = true;
  std::uint32_t high = 0;  // the first half of a pair
  for (;;) {
    if (names_.size() - at_ < 2) return std::nullopt;
    const std::uint32_t unit = names_[at_] | names_[at_ + 1] << 8;
    at_ += 2;
    const bool low = unit >= 0xdc00 && unit < 0xe000;
    if (low != (high != 0)) valid = false;
    if (unit == 0) break;
    std::uint32_t c = unit;
    if (low) c = 0x10000 + ((high & 0x3ff) << 10) + (unit & 0x3ff);
    high = unit >= 0xd800 && unit < 0xdc00 ? unit : 0;
    if (high != 0) continue;
    const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    out.push_back(static_cast<char>(more == 0 ? c : (0xff00 >> (more + 1) & 0xff) | c >> 6 * more));
    for (int i = more; i-- > 0;) out.push_back(static_cast<char>(0x80 | (c >> 6 * i & 0x3f)));
  }
  return valid ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace kin::formats
