#include "store/access.h"

namespace kin::store {
namespace {

struct AccessName {
  Access access;
  std::string_view name;
};

constexpr AccessName kAccessNames[] = {
    {Access::read_write, "read-write"},
    {Access::append_only, "append-only"},
    {Access::read_only, "read-only"},
};

}  // namespace

std::string_view name_of(Access access) {
  for (const AccessName& row : kAccessNames)
    if (row.access == access) return row.name;
  return "unknown";
}

std::optional<Access> access_named(std::string_view name) {
  for (const AccessName& row : kAccessNames)
    if (row.name == name) return row.access;
  return std::nullopt;
}

Result<void> permit_adding(Access access) {
  if (access != Access::read_only) return {};
  return Error(ErrorCode::refused,
               "the repository is read-only, and nothing can be written to it (kin access read-write lifts "
               "that)");
}

Result<void> permit_removing(Access access) {
  KIN_TRY(permit_adding(access));
  if (access != Access::append_only) return {};
  return Error(ErrorCode::refused,
               "the repository is append-only, and nothing can be removed from it or replaced (kin access "
               "read-write lifts that)");
}

}  // namespace kin::store
