// A key file: the master key, wrapped with a key made from one password. A repository may have several; any
// of them opens it.
#pragma once

#include "lib/base/text.h"
#include "store/backend.h"
#include "store/crypto.h"

#include <functional>
#include <string>
#include <vector>

namespace kin::store {

struct KeyInfo {
  std::string name;    // the key file's, in hexadecimal
  bool newer = false;  // made by a newer kin: only the name is known
  std::string user, host;
  Timestamp created;
};

Result<Bytes> encode_key_file(const Key& master_key, std::string_view password, const KeyInfo& info,
                              const PasswordCost& cost);

// What it says in the open.
Result<KeyInfo> read_key_info(ByteView file);
// wrong_password if the password does not open it (or the file is damaged: there is no telling which).
Result<Key> open_key_file(ByteView file, std::string_view password);

// A damaged key is told to `on_damage` and left out; it hinders no other. One of a newer kin is no damage.
Result<std::vector<KeyInfo>> list_keys(Backend& backend, const std::function<void(const Error&)>& on_damage);

struct OpenedKey {
  Key master_key;
  std::string name;                  // of the key that opened
  std::vector<std::string> foreign;  // those that opened before it, but are of another repository
};
// Tries every key of the repository, until one opens whose master key `fits`. A damaged one counts only if
// there is no other.
Result<OpenedKey> open_any_key(Backend& backend, std::string_view password,
                               const std::function<Result<void>(const Key&)>& fits = {});

// Durable on return.
Result<std::string> add_key(Backend& backend, const Key& master_key, std::string_view password,
                            const PasswordCost& cost);

}  // namespace kin::store
