// A small repository that has a file of every kind, and each byte of each of them changed, one at a time: by
// a bit, and by all bits. Then a restore gives the right bytes or an error, and a check heals the file or
// names it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kin::testing {

struct ByteFlips {
  struct Count {
    std::uint64_t healed = 0, told = 0, unused = 0;
  };
  std::map<std::string, Count> counts;  // by the kind of file
  std::vector<std::string> wrong;
};

// Of the bytes, each `stride`-th.
void flip_every_byte(bool is_encrypted, bool has_parity, std::uint64_t stride, ByteFlips& out);

}  // namespace kin::testing
