#pragma once

namespace kin::cmd {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace kin::cmd
