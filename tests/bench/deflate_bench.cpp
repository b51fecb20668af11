// Opens deflate streams and rebuilds them, beside zlib at the same work:
//
//     deflate_bench [--level N] [--memory N] FILE...
//
// A file is a zip, gzip's (its members are taken one by one), zlib's, or raw deflate. A row for each: its
// streams, how many of them came back exactly, plain and deflated bytes, those of the corrections, and
// seconds of CPU
// - proven: opened, with every piece rebuilt by a search of its own, as large containers are;
// - replayed: opened without that, then rebuilt and compared, as small ones are; and opened as above after
//   that if it was not the same;
// - rebuild: of what was proven;
// - zlib: its deflate at that level and memory level. 0 without --level.
// Lines that are no row say of which stream something is wrong.
#include "formats/deflate/opener.h"
#include "formats/deflate/rebuilder.h"
#include "lib/base/allocator.h"
#include "lib/base/file.h"
#include "lib/base/wire.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace kin::formats::deflate {
namespace {

using SharedHint = std::shared_ptr<const Opener::Hint>;

struct Settings {
  int level = 0, memory = 8;
};

struct Totals {
  std::size_t streams = 0, exact = 0, plain = 0, deflated = 0, corrections = 0;
  double proven = 0, replayed = 0, rebuild = 0, zlib = 0;
};

struct OpenedStream {
  std::vector<Piece> pieces;
  std::size_t deflated = 0;
  SharedHint hint;
};

// Of this process alone: others share the machine.
double seconds_of(const auto& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

Result<OpenedStream> open_pieces(ByteView input, const SharedHint& hint, bool proven_later) {
  OpenLimits limits;
  limits.proven_later = proven_later;
  const auto read = [rest = input](std::span<std::uint8_t> into) mutable -> Result<std::size_t> {
    const std::size_t size = std::min(into.size(), rest.size());
    std::copy_n(rest.begin(), size, into.begin());
    rest = rest.subspan(size);
    return size;
  };
  Opener opener(read, limits, hint);
  OpenedStream out;
  for (;;) {
    KIN_TRY_ASSIGN(std::optional<Piece> piece, opener.next());
    if (!piece) break;
    out.pieces.push_back(std::move(*piece));
  }
  out.deflated = opener.compressed_bytes();
  out.hint = opener.hint();
  return out;
}

bool gives(const OpenedStream& opened, ByteView stream) {
  Rebuilder rebuilder;
  for (const Piece& piece : opened.pieces) {
    const auto bytes = rebuilder.add(piece.plain, piece.reconstruction);
    if (!bytes || bytes->size() > stream.size() || !equal(*bytes, stream.first(bytes->size()))) return false;
    stream = stream.subspan(bytes->size());
  }
  return stream.empty() && rebuilder.finished();
}

// What a recipe keeps: each piece's two lengths, and its reconstruction.
std::size_t corrections_size(const std::vector<Piece>& pieces) {
  WireWriter out;
  for (const Piece& piece : pieces) {
    out.varint(piece.plain.size());
    out.blob(piece.reconstruction);
  }
  return out.bytes().size();
}

void zlib_deflate(ByteView plain, const Settings& settings) {
  z_stream stream{};
  ::deflateInit2(&stream, settings.level, Z_DEFLATED, -15, settings.memory, Z_DEFAULT_STRATEGY);
  Bytes out(::deflateBound(&stream, plain.size()) + 64);
  stream.next_in = const_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  ::deflate(&stream, Z_FINISH);
  ::deflateEnd(&stream);
}

// The stream at the front of `input`: its length, and the hint for the next. An error: it cannot be opened.
Result<std::size_t> measure_stream(ByteView input, SharedHint& hint, const Settings& settings,
                                   Totals& totals) {
  ++totals.streams;
  Result<OpenedStream> proven = Error(ErrorCode::unsupported, "not opened");
  const double proven_seconds = seconds_of([&] { proven = open_pieces(input, hint, false); });
  if (!proven) return proven.error();
  const ByteView stream = input.first(proven->deflated);

  bool exact = false, replayed_exact = false;
  totals.rebuild += seconds_of([&] { exact = gives(*proven, stream); });
  totals.replayed += seconds_of([&] {
    const auto unproven = open_pieces(input, hint, true);
    replayed_exact = unproven && gives(*unproven, stream);
  });
  totals.proven += proven_seconds;
  if (!replayed_exact) totals.replayed += proven_seconds;

  Bytes plain;
  for (const Piece& piece : proven->pieces) append(plain, piece.plain);
  if (settings.level > 0) totals.zlib += seconds_of([&] { zlib_deflate(plain, settings); });
  totals.plain += plain.size();
  totals.deflated += proven->deflated;
  totals.corrections += corrections_size(proven->pieces);
  hint = proven->hint;
  if (!exact) return Error(ErrorCode::corrupt, "other bytes came back");
  ++totals.exact;
  return proven->deflated;
}

std::size_t little_endian(ByteView file, std::size_t at, int bytes) {
  std::size_t value = 0;
  for (int i = 0; i < bytes; ++i)
    if (at + static_cast<std::size_t>(i) < file.size())
      value |= std::size_t{file[at + static_cast<std::size_t>(i)]} << (8 * i);
  return value;
}

bool has_zip_signature(ByteView file, std::size_t at, int type) {
  return little_endian(file, at, 4) == (0x4b50U | static_cast<std::size_t>(type) << 16);
}

constexpr int kZipMember = 0x0403, kZipEntry = 0x0201, kZipEnd = 0x0605;

void complain(const std::string& path, std::size_t at, const Error& error) {
  fmt::print("{}, stream at {}: {}\n", path, at, error.message());
}

// Every deflated member that the directory tells of, unless it is encrypted.
void measure_zip(const std::string& path, ByteView file, const Settings& settings, Totals& totals) {
  std::size_t end = file.size() < 22 ? 0 : file.size() - 22;
  while (end > 0 && !has_zip_signature(file, end, kZipEnd)) --end;
  SharedHint hint;
  for (std::size_t at = little_endian(file, end + 16, 4); has_zip_signature(file, at, kZipEntry);
       at += 46 + little_endian(file, at + 28, 2) + little_endian(file, at + 30, 2) +
             little_endian(file, at + 32, 2)) {
    const bool encrypted = (little_endian(file, at + 8, 2) & 1) != 0;
    if (encrypted || little_endian(file, at + 10, 2) != Z_DEFLATED) continue;
    const std::size_t size = little_endian(file, at + 20, 4), member = little_endian(file, at + 42, 4);
    const std::size_t begin =
        member + 30 + little_endian(file, member + 26, 2) + little_endian(file, member + 28, 2);
    if (begin > file.size() || size > file.size() - begin) {
      ++totals.streams;
      complain(path, begin, Error(ErrorCode::corrupt, "no such place in the file"));
      continue;
    }
    const auto measured = measure_stream(file.subspan(begin, size), hint, settings, totals);
    if (!measured) complain(path, begin, measured.error());
  }
}

struct Frame {
  std::size_t header = 0, trailer = 0;
  SharedHint hint;
};

// Around a deflate stream, if this is a gzip or zlib header.
Frame frame_of(ByteView file) {
  Frame frame;
  if (file.size() > 18 && file[0] == 0x1f && file[1] == 0x8b) {
    std::size_t at = 10;
    if ((file[3] & 4) != 0) at += 2 + little_endian(file, 10, 2);
    for (const int flag : {8, 16})
      if ((file[3] & flag) != 0) {
        while (at < file.size() && file[at] != 0) ++at;
        ++at;
      }
    if ((file[3] & 2) != 0) at += 2;
    frame.header = std::min(at, file.size());
    frame.trailer = 8;
    // As formats/gzip.cpp does.
    if (file[8] == 2) frame.hint = Opener::hint_of_level(9);
    if (file[8] == 4) frame.hint = Opener::hint_of_level(1);
  } else if (file.size() > 6 && (file[0] & 15) == 8 && (file[0] * 256 + file[1]) % 31 == 0) {
    frame.header = 2;
    frame.trailer = 4;
  }
  return frame;
}

void measure_in_succession(const std::string& path, ByteView file, const Settings& settings, Totals& totals) {
  SharedHint hint;
  for (std::size_t at = 0; at < file.size();) {
    const Frame frame = frame_of(file.subspan(at));
    if (at > 0 && frame.header == 0) return;  // something that follows the last
    if (at == 0) hint = frame.hint;
    at += frame.header;
    const auto measured = measure_stream(file.subspan(at), hint, settings, totals);
    if (!measured) return complain(path, at, measured.error());
    at += *measured + frame.trailer;
  }
}

// False: there is no such file.
bool measure(const std::string& path, const Settings& settings) {
  const auto file = read_file(path, std::uint64_t{2} << 30);
  if (!file) {
    fmt::print("{}: {}\n", path, file.error().message());
    return false;
  }
  Totals totals;
  (has_zip_signature(*file, 0, kZipMember) ? measure_zip : measure_in_succession)(path, *file, settings,
                                                                                  totals);
  fmt::print("{}  {}  {}  {}  {}  {}  {:.6f}  {:.6f}  {:.6f}  {:.6f}\n", path, totals.streams, totals.exact,
             totals.plain, totals.deflated, totals.corrections, totals.proven, totals.replayed,
             totals.rebuild, totals.zlib);
  return true;
}

}  // namespace
}  // namespace kin::formats::deflate

int main(int argument_count, char** arguments) {
  kin::set_up_allocator();
  kin::formats::deflate::Settings settings;
  bool measured = true;
  fmt::print("file  streams  exact  plain  deflated  corrections  proven s  replayed s  rebuild s  zlib s\n");
  for (int i = 1; i < argument_count; ++i) {
    const std::string_view argument = arguments[i];
    if ((argument == "--level" || argument == "--memory") && i + 1 < argument_count)
      (argument == "--level" ? settings.level : settings.memory) = std::stoi(arguments[++i]);
    else
      measured &= kin::formats::deflate::measure(std::string(argument), settings);
  }
  return measured ? 0 : 1;
}
