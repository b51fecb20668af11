// LargeTable: zeros to be looked up in any order. Memory is taken for what is touched only, and in large
// pages where the system has them: in small ones, a tenth of an encoder's time goes into finding them.
#pragma once

#include <cstdint>
#include <new>
#include <sys/mman.h>
#include <utility>

namespace kin::formats::xz {

class LargeTable {
 public:
  enum class Pages : std::uint8_t { usual, large };

  LargeTable(std::size_t size, Pages pages) : size_(size) {
    void* const out =
        ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (out == MAP_FAILED) throw std::bad_alloc();  // as any allocator
    if (pages == Pages::large) (void)::madvise(out, bytes(), MADV_HUGEPAGE);
    values_ = static_cast<std::uint32_t*>(out);
  }
  ~LargeTable() { ::munmap(values_, bytes()); }
  LargeTable(const LargeTable&) = delete;
  LargeTable& operator=(const LargeTable&) = delete;

  std::uint32_t& operator[](std::size_t at) { return values_[at]; }
  std::uint32_t* data() { return values_; }
  const std::uint32_t* data() const { return values_; }
  std::size_t size() const { return size_; }

 private:
  std::size_t bytes() const { return size_ * sizeof(std::uint32_t); }

  std::size_t size_;
  std::uint32_t* values_;
};

}  // namespace kin::formats::xz
