// Access: what a repository lets be done to it. It guards against accidents, and against clients that keep to
// the rules; not against who has the storage, nor against who has the password and lifts it
// (docs/security.md).
#pragma once

#include "lib/base/result.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace kin::store {

// Written to disk; no number is ever reused.
enum class Access : std::uint8_t { read_write = 0, append_only = 1, read_only = 2 };
inline constexpr Access kMostAccess = Access::read_only;

std::string_view name_of(Access access);  // "append-only"
std::optional<Access> access_named(std::string_view name);

// refused, in one sentence that says what lifts it. To replace something is to remove it.
Result<void> permit_adding(Access access);
Result<void> permit_removing(Access access);

}  // namespace kin::store
