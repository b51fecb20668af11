// Utf8Locale: while it is there, the calling thread's names are UTF-8 to libarchive, which takes those that
// it is given to be in the locale's encoding. kin's own is the C locale, in which every name beyond ASCII
// would be converted, or refused. One thread, a few calls.
#pragma once

#include <locale.h>

namespace kin::formats {

class Utf8Locale {
 public:
  Utf8Locale()
      : locale_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)),
        before_(locale_ != nullptr ? ::uselocale(locale_) : nullptr) {}
  ~Utf8Locale() {
    if (locale_ == nullptr) return;
    ::uselocale(before_);
    ::freelocale(locale_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  const locale_t locale_, before_;
};

}  // namespace kin::formats
