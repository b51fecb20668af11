// What every test of sealed bytes runs with.
#pragma once

#include "store/crypto.h"

namespace kin::testing {

inline constexpr store::Encryption kModes[] = {store::Encryption::none,
                                               store::Encryption::xchacha20_poly1305};
// Argon2id at its cheapest: tests open hundreds of repositories.
inline constexpr store::PasswordCost kCheapPassword{1, 8192};

}  // namespace kin::testing
