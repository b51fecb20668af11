// FeatureRun: many features and their postings, sorted, in a file that never changes.
//
//     filter | pages, one after the other | directory: where each page begins, and where the last one ends
//
// A key's first bits are the number of its page, so a lookup is one access to the filter, one to the
// directory and one to the file. All parts carry checksums. A file that does not fit them is reported as
// corrupt; it may be what a power failure left, since nothing is flushed: that would cost more than building
// the index again.
#pragma once

#include "lib/base/file.h"
#include "lib/base/result.h"
#include "store/feature_filter.h"
#include "store/feature_page.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kin::store {

// It is rebuilt then, by whoever opens it.
inline Error feature_cache_damaged() { return Error(ErrorCode::corrupt, "feature cache is damaged"); }

// What must be known of a run besides its file.
struct FeatureRunShape {
  std::uint64_t keys = 0;
  unsigned page_bits = 0;  // there are 2^page_bits pages
  std::uint64_t filter_blocks = 0;
  std::uint64_t pages_end = 0;  // in the file; the directory follows
  std::uint64_t filter_checksum = 0;
  std::uint64_t directory_checksum = 0;

  unsigned suffix_bits() const { return kFeatureBits - page_bits; }
  std::uint64_t pages() const { return std::uint64_t{1} << page_bits; }
  std::uint64_t page_of(FeatureKey key) const { return key >> suffix_bits(); }
  std::uint64_t suffix_of(FeatureKey key) const { return key & ((FeatureKey{1} << suffix_bits()) - 1); }
  std::uint64_t filter_bytes() const { return filter_blocks * sizeof(FilterBlock); }
  std::uint64_t directory_bytes() const { return (pages() + 1) * sizeof(std::uint64_t); }

  Bytes encode() const;
  static std::optional<FeatureRunShape> decode(ByteView bytes);
};

// Writes a run; without finish() its file is removed. What fails is reported by finish().
class FeatureRunWriter {
 public:
  // No more than `most_keys` will come.
  FeatureRunWriter(std::string path, std::uint64_t most_keys, std::uint64_t filter_bytes);
  ~FeatureRunWriter();
  FeatureRunWriter(const FeatureRunWriter&) = delete;
  FeatureRunWriter& operator=(const FeatureRunWriter&) = delete;

  void add(FeatureKey key, const Postings& postings);  // ascending
  Result<FeatureRunShape> finish();

 private:
  void finish_page();
  void flush_pages();
  void start_chunk();
  void finish_chunk();
  void write(ByteView bytes, std::uint64_t offset);

  std::string path_;
  Fd file_;
  Result<void> result_;
  bool finished_ = false;
  FeatureRunShape shape_;
  FeatureKey last_key_ = 0;
  std::vector<std::uint64_t> directory_;
  std::uint64_t page_number_ = 0;
  PageWriter page_;
  Bytes pages_;  // not written yet
  std::uint64_t chunk_start_ = 0;
  std::vector<FilterBlock> chunk_;  // of the filter
};

class FeatureRun {
 public:
  static Result<FeatureRun> open(const std::string& path, const FeatureRunShape& shape);

  const FeatureRunShape& shape() const { return shape_; }
  const std::string& path() const { return path_; }

  // Appends what is known of each key to what is there. Keys ascend.
  Result<void> read(std::span<const FeatureKey> keys, std::span<Postings> into);
  // Gives the filter's memory back, until the next read().
  void forget_filter() { filter_ = FeatureFilter(); }

  // All keys, ascending.
  class Cursor {
   public:
    // The run must stay where it is.
    explicit Cursor(FeatureRun& run);
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;

    bool done() const { return done_; }
    FeatureKey key() const { return key_; }
    Postings postings() const { return cursor_.postings(); }
    void next();
    Result<void> result() const { return result_; }

   private:
    void start_page();
    void fill();

    FeatureRun& run_;
    Result<void> result_;
    Bytes buffer_;
    std::uint64_t buffer_start_ = 0;  // in the file
    std::uint64_t page_number_ = 0;   // the next one
    PageView page_;
    PageView::Cursor cursor_{&page_};
    FeatureKey first_ = 0;
    FeatureKey key_ = 0;
    bool done_ = false;
  };

 private:
  Result<void> load_directory();
  Result<void> load_filter();
  Result<void> read_exactly(std::span<std::uint8_t> into, std::uint64_t offset) const;

  std::string path_;
  FeatureRunShape shape_;
  Fd file_;
  std::vector<std::uint64_t> directory_;  // empty until it is needed
  FeatureFilter filter_;                  // the same
  std::uint64_t asked_keys_ = 0;          // since it was opened
  Bytes buffer_;
};

}  // namespace kin::store
