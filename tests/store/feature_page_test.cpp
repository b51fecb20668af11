#include "store/feature_page.h"

#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <vector>

namespace kin::store {
namespace {

struct Entry {
  std::uint64_t key = 0;
  Postings postings;
};

Postings postings_of(std::uint32_t count) {
  Postings out;
  out.count = count;
  out.size = out.is_stopped() ? 0 : std::min(count, Postings::kMost);
  for (std::uint32_t i = 0; i < out.size; ++i) out.newest_first[i] = 0xfffffff0 - 1000 * i;
  return out;
}

std::vector<Entry> entries() {
  std::vector<Entry> out;
  std::uint64_t key = 0;
  for (const std::uint32_t count : {1u, 2u, 7u, 8u, 9u, 1u, 300u, 4096u, 4097u, 1u})
    out.push_back({key += 6, postings_of(count)});
  return out;
}

Bytes page_of(const std::vector<Entry>& entries, unsigned width) {
  PageWriter writer(width);
  for (const Entry& entry : entries) writer.add(entry.key, entry.postings);
  const ByteView page = writer.finish();
  return {page.begin(), page.end()};
}

bool same_postings(const Postings& a, const Postings& b) {
  return a.count == b.count && a.size == b.size &&
         std::equal(a.newest_first.begin(), a.newest_first.begin() + a.size, b.newest_first.begin());
}

// Reads all of it in both ways; the sum keeps the reads.
std::uint64_t read_all(ByteView bytes, unsigned width) {
  const PageView page(bytes, width);
  std::uint64_t sum = 0;
  for (PageView::Cursor at(&page); !at.done(); at.next()) {
    const Postings postings = at.postings();
    CHECK(postings.size <= Postings::kMost);
    CHECK(postings.count <= Postings::kMostCommon + 1);
    sum += at.key() + postings.count;
  }
  for (std::uint64_t key = 0; key < 64; ++key) sum += page.find(key).size;
  if (page.is_damaged()) CHECK(page.size() == 0);
  return sum;
}

}  // namespace

TEST_CASE("a page gives back what was written", "[feature_page]") {
  for (const unsigned width : {1u, 2u, 3u, 5u}) {
    const Bytes bytes = page_of(entries(), width);
    const PageView page(bytes, width);
    REQUIRE_FALSE(page.is_damaged());
    REQUIRE(page.size() == entries().size());
    PageView::Cursor at(&page);
    for (const Entry& entry : entries()) {
      REQUIRE_FALSE(at.done());
      CHECK(at.key() == entry.key);
      CHECK(same_postings(at.postings(), entry.postings));
      CHECK(same_postings(page.find(entry.key), entry.postings));
      CHECK(page.find(entry.key + 1).count == 0);
      at.next();
    }
    CHECK(at.done());
    CHECK(page.find(0).count == 0);
  }
}

TEST_CASE("a writer of pages is empty after each", "[feature_page]") {
  PageWriter writer(2);
  writer.add(1, postings_of(3));
  CHECK(PageView(writer.finish(), 2).size() == 1);
  CHECK(writer.empty());
  writer.add(2, postings_of(1));
  CHECK(PageView(writer.finish(), 2).find(2).count == 1);
}

TEST_CASE("a damaged page is read without harm", "[feature_page]") {
  const Bytes whole = page_of(entries(), 2);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // Of the exact size on the heap, so that the sanitizer sees a read beyond it.
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    if (size < 21) CHECK(PageView(cut, 2).is_damaged());
    read_all(cut, 2);
  }
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const std::uint8_t value : {0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x7f, 0x80, 0xff}) {
      Bytes changed = whole;
      changed[at] = value;
      read_all(changed, 2);
    }
  for (std::uint64_t seed = 0; seed < 1000; ++seed)
    read_all(testing::random_bytes(seed, seed % 100), 1 + seed % 5);
}

}  // namespace kin::store
