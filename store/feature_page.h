// A page: the features of one range of keys, in one sorted run, with their postings.
//
//     varint n | n keys, fixed width, ascending | n kinds, a byte each | postings of each, by its kind
//
// Keys are relative to the page's range, so they take 3 bytes in a large run. Kinds: 1 to 8, that many
// ordinals, and the count is the same; 9, the count and 8 ordinals; 0, a feature too common to have any. Each
// of these is 4 bytes, little-endian; so postings take 4 times their kind, and a lookup is a binary search
// and a sum.
#pragma once

#include "lib/base/bytes.h"
#include "store/feature_postings.h"

#include <cstddef>

namespace kin::store {

// Bytes of a key in pages that cover 2^bits keys each.
constexpr unsigned key_width(unsigned bits) { return std::max(1u, (bits + 7) / 8); }

class PageWriter {
 public:
  explicit PageWriter(unsigned width) : width_(width) {}

  void add(std::uint64_t key, const Postings& postings);  // ascending
  bool empty() const { return kinds_.empty(); }
  // The page; the writer is empty again.
  ByteView finish();

 private:
  unsigned width_;
  Bytes keys_;
  Bytes kinds_;
  Bytes postings_;
  Bytes page_;
};

// Of bytes that must outlive it; reads nothing outside them, whatever they are. One that is_damaged() has no
// features; otherwise damage may show as an answer that is wrong, since a lookup does not look at all of it.
class PageView {
 public:
  PageView() = default;
  PageView(ByteView page, unsigned width);

  bool is_damaged() const { return damaged_; }
  std::size_t size() const { return kinds_.size(); }
  Postings find(std::uint64_t key) const;

  // From the first to the last.
  class Cursor {
   public:
    explicit Cursor(const PageView* page) : page_(page) {}
    bool done() const { return at_ == page_->size(); }
    std::uint64_t key() const { return page_->key(at_); }
    Postings postings() const { return page_->postings(at_, offset_); }
    void next();

   private:
    const PageView* page_;
    std::size_t at_ = 0;
    std::size_t offset_ = 0;
  };

 private:
  std::uint64_t key(std::size_t at) const;
  Postings postings(std::size_t at, std::size_t offset) const;

  bool damaged_ = false;
  unsigned width_ = 1;
  ByteView keys_;
  ByteView kinds_;
  ByteView postings_;
};

}  // namespace kin::store
