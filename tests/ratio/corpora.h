// Small corpora of the kinds that kin is made for. The same bytes on every machine and for ever: seeds, and
// the texts in tests/ratio/corpus, which are old copies of this project's own and are not kept up to date.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <map>
#include <string>
#include <vector>

namespace kin::testing {

using Files = std::map<std::string, Bytes>;  // by path; one directory deep at most

struct Corpus {
  std::string name;
  std::vector<Files> backups;  // one after the other, of the same place
};

// `texts` is the directory with the old copies.
Result<std::vector<Corpus>> make_corpora(const std::string& texts);

}  // namespace kin::testing
