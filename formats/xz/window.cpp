#include "formats/xz/window.h"

#include <algorithm>

namespace kin::formats::xz {

// Half as much again as must stay, so that bytes are moved seldom.
Window::Window(std::size_t before) : before_(before), most_(before + before / 2 + kReserve) {}

std::size_t Window::add(ByteView plain) {
  if (most_ - end_ < plain.size() && at_ > before_) {
    const std::size_t drop = at_ - before_;
    std::copy(bytes_.begin() + static_cast<std::ptrdiff_t>(drop),
              bytes_.begin() + static_cast<std::ptrdiff_t>(end_), bytes_.begin());
    dropped_ += drop;
    at_ -= drop;
    end_ -= drop;
  }
  const std::size_t size = std::min(plain.size(), most_ - end_);
  if (bytes_.size() < end_ + size + kReadBeyond)
    bytes_.resize(std::min(std::max(2 * bytes_.size(), end_ + size + kReadBeyond), most_ + kReadBeyond));
  std::copy_n(plain.begin(), size, bytes_.begin() + static_cast<std::ptrdiff_t>(end_));
  end_ += size;
  return size;
}

}  // namespace kin::formats::xz
