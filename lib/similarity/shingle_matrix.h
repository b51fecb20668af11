// The matrix of simhash -m: the score of every pair of files, as text, a row at a time.
#pragma once

#include "lib/similarity/shingleprint.h"

#include <functional>
#include <string>
#include <string_view>

namespace kin {

// ".37", or "1.0": two digits, cut and not rounded.
std::string shingle_score_text(double score);

// `prints` of one shingle size and hash, without features for what could not be hashed; `names` are as many.
// `write` gives false to stop.
void write_shingle_matrix(const std::vector<std::string>& names, const std::vector<Shingleprint>& prints,
                          const std::function<bool(std::string_view text)>& write);

}  // namespace kin
