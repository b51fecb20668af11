// Opens deflate streams and rebuilds them, beside zlib at the same work: deflate_bench FILE...
//
// A file is gzip's (its members are taken one by one), zlib's, or raw deflate. Per file: whether all came
// back exactly, the reconstruction's bytes and what part of the compressed ones that is, and plain MB/s of
// opening and rebuilding, and of zlib's own deflate at the level that comes nearest to the stream's size.
#include "formats/deflate/rebuilder.h"
#include "formats/deflate/whole.h"
#include "lib/base/file.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

namespace kin::formats::deflate {
namespace {

// Of this process alone: others share the machine.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Where the deflate stream starts, if this is a gzip or zlib header.
std::size_t header_size(ByteView file, std::size_t& trailer) {
  trailer = 0;
  if (file.size() > 18 && file[0] == 0x1f && file[1] == 0x8b) {
    trailer = 8;
    std::size_t at = 10;
    if ((file[3] & 4) != 0) at += 2U + file[10] + 256U * file[11];
    for (const int flag : {8, 16})
      if ((file[3] & flag) != 0) {
        while (at < file.size() && file[at] != 0) ++at;
        ++at;
      }
    if ((file[3] & 2) != 0) at += 2;
    return std::min(at, file.size());
  }
  if (file.size() > 6 && (file[0] & 15) == 8 && (file[0] * 256 + file[1]) % 31 == 0) {
    trailer = 4;
    return 2;
  }
  return 0;
}

Bytes zlib_deflate(ByteView plain, int level) {
  z_stream stream{};
  ::deflateInit2(&stream, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  Bytes out(::deflateBound(&stream, plain.size()) + 64);
  stream.next_in = const_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  ::deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

int measure(const std::string& path, int level) {
  const auto file = read_file(path, std::uint64_t{2} << 30);
  if (!file) {
    fmt::print("{}: {}\n", path, file.error().message());
    return 1;
  }
  std::size_t at = 0, plain = 0, compressed = 0, reconstruction = 0, members = 0, failed = 0;
  double open_time = 0, rebuild_time = 0, zlib_time = 0;
  std::string why;
  while (at < file->size()) {
    std::size_t trailer = 0;
    const ByteView rest = ByteView(*file).subspan(at);
    const std::size_t header = header_size(rest, trailer);
    if (members > 0 && header == 0) break;
    ++members;
    auto start = cpu_seconds();
    const auto opened = open_stream(rest.subspan(header));
    open_time += cpu_seconds() - start;
    if (!opened) {
      ++failed;
      why = opened.error().message();
      break;
    }
    start = cpu_seconds();
    const auto rebuilt = rebuild_stream(opened->plain, opened->reconstruction);
    rebuild_time += cpu_seconds() - start;
    if (!rebuilt || !equal(*rebuilt, rest.subspan(header, opened->compressed_bytes))) {
      ++failed;
      why = "not the same";
    }
    plain += opened->plain.size();
    compressed += opened->compressed_bytes;
    reconstruction += opened->reconstruction.size();
    if (level > 0) {
      start = cpu_seconds();
      zlib_deflate(opened->plain, level);
      zlib_time += cpu_seconds() - start;
    }
    at += header + opened->compressed_bytes + trailer;
  }
  const double mb = static_cast<double>(plain) / 1e6;
  fmt::print(
      "{:<44} {:>10} {:>9} {:>8} {:7.3f} % {:7.1f} {:7.1f}",
      path.size() > 44 ? path.substr(path.size() - 44) : path, plain, compressed, reconstruction,
      100 * static_cast<double>(reconstruction) / static_cast<double>(std::max<std::size_t>(1, compressed)),
      mb / open_time, mb / rebuild_time);
  if (level > 0)
    fmt::print(" {:7.1f}  {:.2f}x {:.2f}x", mb / zlib_time, zlib_time / open_time, zlib_time / rebuild_time);
  fmt::print(" {}\n", failed == 0 ? "exact" : why);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace kin::formats::deflate

int main(int argument_count, char** arguments) {
  int level = 0, failed = 0;
  fmt::print("{:<44} {:>10} {:>9} {:>8} {:>9} {:>7} {:>7}\n", "file", "plain", "deflated", "recon", "",
             "open", "rebuild");
  for (int i = 1; i < argument_count; ++i) {
    const std::string argument = arguments[i];
    if (argument.size() == 2 && argument[0] == '-')
      level = argument[1] - '0';
    else
      failed += kin::formats::deflate::measure(argument, level);
  }
  return failed == 0 ? 0 : 1;
}
