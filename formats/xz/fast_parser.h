// FastParser: chooses symbols by rules of thumb, one byte ahead. What liblzma calls the fast mode.
#pragma once

#include "formats/xz/symbol_coder.h"

namespace kin::formats::xz {

class FastParser {
 public:
  // Both must outlive it.
  FastParser(MatchFinder& finder, const SymbolCoder& coder) : finder_(finder), coder_(coder) {}

  Symbol next();

 private:
  bool is_better_next(const Match& match) const;

  MatchFinder& finder_;
  const SymbolCoder& coder_;
  Matches matches_;  // of the place behind the symbol, if it was looked at
};

}  // namespace kin::formats::xz
