// KIN_CHECK aborts on a bug of our own. Never use it on bytes from disk or wire: those get an Error.
#pragma once

#include <cstdio>
#include <cstdlib>

#define KIN_CHECK(condition)                                                                       \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      std::fprintf(stderr, "kin: bug: %s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                                \
    }                                                                                              \
  } while (false)
