// Deflate streams for tests: made by zlib as the test asks, and by whichever other programs are installed.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/file.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"
#include "tests/support/source_directory.h"
#include "tests/support/temp_dir.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace kin::testing {

struct ZlibOptions {
  int level = 6, memory = 8, window = 15, strategy = Z_DEFAULT_STRATEGY;
  int flush = Z_NO_FLUSH;  // after every `flush_every` bytes
  std::size_t flush_every = 0;
  std::vector<int> levels = {};  // by turns, after every `flush_every` bytes another
  int chain = 0, insert = 0;     // of a level, if not zlib's own; the nice length is 258 then
};

inline Bytes zlib_stream(ByteView plain, const ZlibOptions& options = {}) {
  z_stream stream{};
  REQUIRE(::deflateInit2(&stream, options.level, Z_DEFLATED, -options.window, options.memory,
                         options.strategy) == Z_OK);
  if (options.chain != 0) REQUIRE(::deflateTune(&stream, 4, options.insert, 258, options.chain) == Z_OK);
  const std::size_t step = options.flush_every == 0 ? plain.size() : options.flush_every;
  Bytes out(::deflateBound(&stream, plain.size()) + 1024 + 64 * (step == 0 ? 1 : plain.size() / step));
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  for (std::size_t at = 0; at < plain.size(); at += step) {
    stream.next_in = const_cast<Bytef*>(plain.data() + at);
    stream.avail_in = static_cast<uInt>(std::min(step, plain.size() - at));
    if (!options.levels.empty())
      REQUIRE(::deflateParams(&stream, options.levels[at / step % options.levels.size()], options.strategy) ==
              Z_OK);
    ::deflate(&stream, options.flush);
  }
  REQUIRE(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

// Source code, as in the tree of this project: real text with long and short matches.
inline Bytes real_text(std::size_t size) {
  Bytes out;
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"lib", "store", "formats", "docs", "tests"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(source_directory()) / folder))
      if (entry.is_regular_file() && (entry.path().extension() == ".cpp" ||
                                      entry.path().extension() == ".h" || entry.path().extension() == ".md"))
        files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) append(out, value_of(read_file(file.string(), 1 << 20)));
  if (out.size() > size) out.resize(size);
  return out;
}

// Text, structures of a program, what does not compress, and zeros. The same for ever: what is kept of its
// streams is pinned.
inline Bytes mixed_content(std::size_t size) {
  Bytes out = text_like(5, size / 2);
  append(out, program_like(6, size / 4));
  append(out, random_bytes(7, size / 16));
  append(out, Bytes(size / 16));
  append(out, compressible_bytes(8, size / 16));
  append(out, text_like(9, size / 16));
  return out;
}

inline bool has_program(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

// The deflate stream of the gzip file that the command, told the plain file's name, writes to its output.
inline Bytes gzip_stream_by(const std::string& command, ByteView plain) {
  const TempDir directory;
  const std::string from = directory / "plain", to = directory / "out";
  std::ofstream(from, std::ios::binary)
      .write(reinterpret_cast<const char*>(plain.data()), static_cast<std::streamsize>(plain.size()));
  REQUIRE(std::system((command + " " + from + " > " + to).c_str()) == 0);
  const Bytes file = value_of(read_file(to, std::uint64_t{1} << 30));
  REQUIRE(file.size() > 18);
  std::size_t at = 10;
  if ((file[3] & 8) != 0) {
    while (file[at] != 0) ++at;
    ++at;
  }
  return {file.begin() + static_cast<std::ptrdiff_t>(at), file.end()};
}

}  // namespace kin::testing
