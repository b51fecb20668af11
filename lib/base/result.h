// Result<T>: a value or an Error. The one way that kin reports failure; nothing of ours throws.
// Member names are std::expected's, so that this can become an alias once the compilers we support have it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace kin {

// What kind of failure: decides the exit code and nothing else. The message tells a person what happened.
enum class ErrorCode {
  not_found,         // a named thing that should be there is not
  corrupt,           // bytes from a disk or wire are not what they must be
  io,                // the operating system refused
  no_space,          // the disk or the quota is full
  unsupported,       // made by a newer kin, or with a feature that this build lacks
  invalid_argument,  // the caller's or the user's input makes no sense
  busy,              // someone else holds it
  cancelled,         // the user asked to stop
  no_repository,     // the place given holds no repository
  wrong_password,    // no key of the repository opens with this password
  wrong_base,        // a delta was made from other bytes than those given
  refused,           // the repository is append-only or read-only
};

class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // Puts what only the caller knows in front: "pack 77c0…: " + "checksum mismatch".
  Error context(std::string_view what) && {
    message_.insert(0, ": ").insert(0, what);
    return std::move(*this);
  }

 private:
  ErrorCode code_;
  std::string message_;
};

inline Error interrupted() { return Error(ErrorCode::cancelled, "interrupted"); }

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T value_or(T other) && { return has_value() ? std::get<0>(std::move(state_)) : std::move(other); }

  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

}  // namespace kin

#define KIN_CONCAT_(a, b) a##b
#define KIN_CONCAT(a, b) KIN_CONCAT_(a, b)

// Returns the error of a Result to the caller; one per line.
#define KIN_TRY(expression)                                                                   \
  do {                                                                                        \
    if (auto kin_result_ = (expression); !kin_result_) return std::move(kin_result_).error(); \
  } while (false)

// KIN_TRY_ASSIGN(const Bytes packed, backend.get(name)); declares `packed`, or returns the error.
#define KIN_TRY_ASSIGN(declaration, ...)                                                               \
  auto KIN_CONCAT(kin_result_, __LINE__) = (__VA_ARGS__);                                              \
  if (!KIN_CONCAT(kin_result_, __LINE__)) return std::move(KIN_CONCAT(kin_result_, __LINE__)).error(); \
  declaration = *std::move(KIN_CONCAT(kin_result_, __LINE__))
