// Runs a fuzz target over saved inputs, for compilers without libFuzzer: the arguments are files, or
// directories of files.
#include "lib/base/file.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

int count = 0;

bool replay(const std::string& path) {
  const auto input = kin::read_file(path, 16 << 20);
  if (!input) {
    std::fprintf(stderr, "%s\n", input.error().message().c_str());
    return false;
  }
  LLVMFuzzerTestOneInput(input->data(), input->size());
  ++count;
  return true;
}

}  // namespace

int main(int argument_count, char** arguments) {
  bool good = true;
  for (int i = 1; i < argument_count; ++i) {
    if (!std::filesystem::is_directory(arguments[i])) {
      good = replay(arguments[i]) && good;
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(arguments[i]))
      if (entry.is_regular_file()) good = replay(entry.path().string()) && good;
  }
  std::printf("%d inputs\n", count);
  return good && count > 0 ? 0 : 1;
}
