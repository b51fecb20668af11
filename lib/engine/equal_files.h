// Which of many files are equal.
#pragma once

#include "lib/engine/file_set.h"

namespace kin {

// Sets of two files and more that have the same bytes, as places in `files`; each ascending, by their first.
// Only files with equal prints are read, and these once. One that cannot be read any more is told of, and in
// no set.
Result<std::vector<std::vector<std::uint32_t>>> equal_files(const PrintedFiles& files,
                                                            const OnSkippedFile& on_skipped,
                                                            const std::stop_token& stop);

// Whether two files have the same bytes.
Result<bool> have_equal_content(const std::string& a, const std::string& b, const std::stop_token& stop);

}  // namespace kin
