// Result<T> in tests: the value or the error, and a failed test with the other's message where the wrong one
// comes. Not for threads other than the test's own: Catch2 counts in one thread only.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <catch2/catch.hpp>

#include <optional>
#include <string>

namespace kin::testing {

inline std::string name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::io:
      return "io";
    case ErrorCode::no_space:
      return "no_space";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::no_repository:
      return "no_repository";
    case ErrorCode::wrong_password:
      return "wrong_password";
    case ErrorCode::refused:
      return "refused";
    case ErrorCode::wrong_base:
      return "wrong_base";
  }
  return "error code " + std::to_string(static_cast<int>(code));
}

}  // namespace kin::testing

namespace Catch {

template <>
struct StringMaker<kin::ErrorCode> {
  static std::string convert(kin::ErrorCode code) { return kin::testing::name_of(code); }
};

template <>
struct StringMaker<std::optional<kin::ErrorCode>> {
  static std::string convert(std::optional<kin::ErrorCode> code) {
    return code ? kin::testing::name_of(*code) : "no error";
  }
};

}  // namespace Catch

namespace kin::testing {

template <class T>
T value_of(Result<T> result, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  INFO("at " << file << ":" << line);
  if (!result) FAIL("error: " << result.error().message());
  REQUIRE(result.has_value());
  return *std::move(result);
}

inline void require_ok(const Result<void>& result, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
  INFO("at " << file << ":" << line);
  if (!result) FAIL("error: " << result.error().message());
  REQUIRE(result.has_value());
}

template <class T>
Error error_of(const Result<T>& result, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  INFO("at " << file << ":" << line << ": there should be an error");
  REQUIRE_FALSE(result.has_value());
  return result.error();
}

// What kind of error it is; nothing if it is none.
template <class T>
std::optional<ErrorCode> code_of(const Result<T>& result) {
  if (result) return std::nullopt;
  return result.error().code();
}

}  // namespace kin::testing
