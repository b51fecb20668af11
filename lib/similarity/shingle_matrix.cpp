// 2,000 files are 2 million pairs. simhash(1) merges two lists of 128 for each of them. But most pairs share
// nothing, or a handful: so go from the values to the files that have them, and count up those, row by row.
// What is left is to write the text.
#include "lib/similarity/shingle_matrix.h"

#include <algorithm>
#include <array>

namespace kin {
namespace {

// Which files have a value: rows of file numbers, one behind the other.
class ShinglePostings {
 public:
  explicit ShinglePostings(const std::vector<Shingleprint>& prints) {
    struct Entry {
      std::uint32_t value, file;
    };
    std::vector<Entry> entries;
    for (std::uint32_t file = 0; file < prints.size(); ++file)
      for (const std::uint32_t value : prints[file].features) entries.push_back({value, file});
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) { return a.value < b.value; });
    rows_of_.resize(prints.size());
    for (std::size_t begin = 0, end = 0; begin < entries.size(); begin = end) {
      while (end < entries.size() && entries[end].value == entries[begin].value) ++end;
      if (end - begin < 2) continue;  // nobody to share it with
      const std::size_t first = files_.size();
      for (std::size_t i = begin; i < end; ++i) {
        files_.push_back(entries[i].file);
        rows_of_[entries[i].file].push_back({first, i - begin});
      }
    }
  }

  // One more in `counts` of each earlier file for each value that it shares with this one.
  void count(std::size_t file, std::vector<std::uint32_t>& counts) const {
    for (const Row& row : rows_of_[file])
      for (std::size_t i = 0; i < row.before; ++i) ++counts[files_[row.first + i]];
  }

 private:
  struct Row {
    std::size_t first, before;  // of the files before this one
  };
  std::vector<std::uint32_t> files_;
  std::vector<std::vector<Row>> rows_of_;
};

void append_right(std::string& out, std::string_view text, std::size_t width) {
  out.append(width - std::min(width, text.size()), ' ').append(text);
}

}  // namespace

std::string shingle_score_text(double score) {
  if (score >= 1) return "1.0";
  const int hundredths = static_cast<int>(score * 100);
  return {'.', static_cast<char>('0' + hundredths / 10), static_cast<char>('0' + hundredths % 10)};
}

void write_shingle_matrix(const std::vector<std::string>& names, const std::vector<Shingleprint>& prints,
                          const std::function<bool(std::string_view text)>& write) {
  const std::size_t files = names.size();
  if (files == 0) return;
  std::size_t name_width = 0;
  for (const std::string& name : names) name_width = std::max(name_width, name.size());
  const std::size_t width = std::max<std::size_t>(3, std::to_string(files).size());
  std::string out(name_width + width + 1, ' ');
  for (std::size_t i = 1; i + 1 < files; ++i) {
    append_right(out, std::to_string(i), width);
    out += ' ';
  }
  // simhash(1) indents the 0 of a lonely file by one more.
  append_right(out, std::to_string(files - 1), files == 1 ? width + 1 : width);
  out += '\n';
  const ShinglePostings postings(prints);
  std::vector<std::uint32_t> counts(files);
  for (std::size_t row = 0; row < files; ++row) {
    out += names[row];
    out.append(name_width - names[row].size() + 1, ' ');
    append_right(out, std::to_string(row + 1), width);
    std::fill(counts.begin(), counts.end(), 0);
    postings.count(row, counts);
    for (std::size_t column = 0; column < row; ++column) {
      out += ' ';
      const std::size_t mine = prints[row].features.size(), other = prints[column].features.size();
      if (mine == 0 || other == 0)
        append_right(out, " ? ", width);
      else if (counts[column] == 0)
        append_right(out, ".00", width);
      else
        append_right(out, shingle_score_text(shingle_score(counts[column], mine, other)), width);
    }
    out += '\n';
    if (out.size() < (64U << 10) && row + 1 < files) continue;
    if (!write(out)) return;
    out.clear();
  }
}

}  // namespace kin
