#include "store/key_file.h"

#include "lib/base/wire.h"

#include <fmt/core.h>

#include <array>
#include <pwd.h>
#include <unistd.h>

namespace kin::store {
namespace {

constexpr std::string_view kKeyMagic = "KINKEY01";
constexpr std::uint8_t kArgon2id = 1;

struct Parsed {
  KeyInfo info;
  PasswordCost cost;
  Salt salt{};
  std::size_t bound_size = 0;  // what comes before the nonce is bound to the wrapped key
  Nonce nonce{};
  ByteView sealed;
};

Result<Parsed> parse(ByteView file) {
  WireReader in(file);
  Parsed out;
  if (as_text(in.raw(kKeyMagic.size())) != kKeyMagic)
    return Error(ErrorCode::corrupt, "not a key that kin wrote");
  if (in.u8() != kArgon2id) return Error(ErrorCode::unsupported, "the key was made by a newer kin");
  out.cost.operations = in.varint();
  out.cost.memory_bytes = in.varint();
  out.salt = in.array<16>();
  out.info.created.seconds = in.signed_varint();
  out.info.user = in.text();
  out.info.host = in.text();
  out.bound_size = in.position();
  out.nonce = in.array<24>();
  out.sealed = in.raw(sizeof(Key) + kTagBytes);
  KIN_TRY(in.finish("key"));
  return out;
}

}  // namespace

Result<Bytes> encode_key_file(const Key& master_key, std::string_view password, const KeyInfo& info,
                              const PasswordCost& cost) {
  WireWriter out;
  out.raw(as_bytes(kKeyMagic));
  out.u8(kArgon2id);
  out.varint(cost.operations);
  out.varint(cost.memory_bytes);
  const Salt salt = random_salt();
  out.raw(salt);
  out.signed_varint(info.created.seconds);
  out.text(info.user);
  out.text(info.host);
  const Bytes bound = out.bytes();
  const Nonce nonce = random_nonce();
  out.raw(nonce);
  KIN_TRY_ASSIGN(const Key wrapping_key, key_from_password(password, salt, cost));
  out.raw(Sealer(Encryption::xchacha20_poly1305, wrapping_key).seal(nonce, bound, master_key));
  return out.take();
}

Result<KeyInfo> read_key_info(ByteView file) {
  KIN_TRY_ASSIGN(Parsed parsed, parse(file));
  return std::move(parsed.info);
}

Result<Key> open_key_file(ByteView file, std::string_view password) {
  KIN_TRY_ASSIGN(const Parsed parsed, parse(file));
  KIN_TRY_ASSIGN(const Key wrapping_key, key_from_password(password, parsed.salt, parsed.cost));
  const auto master = Sealer(Encryption::xchacha20_poly1305, wrapping_key)
                          .open(parsed.nonce, file.first(parsed.bound_size), parsed.sealed);
  if (!master) return Error(ErrorCode::wrong_password, "wrong password");
  WireReader in(*master);
  return in.array<32>();
}

Result<std::vector<KeyInfo>> list_keys(Backend& backend, const std::function<void(const Error&)>& on_damage) {
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, backend.list(FileKind::key));
  std::vector<KeyInfo> out;
  for (const FileInfo& file : files) {
    const FileName name{FileKind::key, file.name};
    const auto bytes = get_named(backend, name);
    auto info = bytes ? read_key_info(*bytes) : Result<KeyInfo>(bytes.error());
    if (!info && info.error().code() == ErrorCode::not_found) continue;  // removed since it was listed
    if (!info && info.error().code() == ErrorCode::unsupported) {
      KeyInfo newer;
      newer.newer = true;
      info = std::move(newer);
    }
    if (!info) {
      on_damage(bytes ? std::move(info).error().context(name.text()) : bytes.error());
      continue;
    }
    info->name = file.name;
    out.push_back(*std::move(info));
  }
  return out;
}

Result<OpenedKey> open_any_key(Backend& backend, std::string_view password,
                               const std::function<Result<void>(const Key&)>& fits) {
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, backend.list(FileKind::key));
  if (files.empty())
    return Error(ErrorCode::corrupt,
                 "the repository is encrypted, but its keys are gone: the folder 'keys' is empty");
  // Neither a damaged key nor one of another repository must keep the others from opening; if none does, all
  // of them are reported. A damaged one is known by its name, before a changed cost makes us compute for
  // minutes.
  std::optional<Error> damage, misfit;
  std::string foreign;
  OpenedKey opened;
  bool any_sound = false;
  for (const FileInfo& file : files) {
    const FileName name{FileKind::key, file.name};
    const auto bytes = get_named(backend, name);
    auto master = bytes ? open_key_file(*bytes, password) : Result<Key>(bytes.error());
    if (master) {
      auto fitting = fits ? fits(*master) : Result<void>();
      if (fitting) {
        opened.master_key = *master;
        opened.name = file.name;
        return opened;
      }
      misfit = std::move(fitting).error();
      foreign += (foreign.empty() ? "" : ", ") + name.text();
      opened.foreign.push_back(file.name);
      continue;
    }
    if (master.error().code() == ErrorCode::not_found) continue;  // removed since it was listed
    if (master.error().code() == ErrorCode::wrong_password) {
      any_sound = true;
    } else {
      Error error = bytes ? std::move(master).error().context(name.text()) : bytes.error();
      damage = damage ? Error(damage->code(), damage->message() + "; " + error.message()) : std::move(error);
    }
  }
  // The one or the other, and the password cannot tell which.
  if (misfit)
    return Error(misfit->code(),
                 fmt::format("{} (or this is of another repository: {})", misfit->message(), foreign));
  if (damage && !any_sound) return *std::move(damage);
  if (damage) return Error(ErrorCode::wrong_password, "wrong password (and " + damage->message() + ")");
  return Error(ErrorCode::wrong_password,
               files.size() == 1 ? "wrong password" : "wrong password: none of the keys opens with it");
}

Result<std::string> add_key(Backend& backend, const Key& master_key, std::string_view password,
                            const PasswordCost& cost) {
  KeyInfo info;
  info.created = now();
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  info.host = host.data();
  if (const passwd* user = ::getpwuid(::geteuid())) info.user = user->pw_name;
  KIN_TRY_ASSIGN(const Bytes file, encode_key_file(master_key, password, info, cost));
  const FileName name{FileKind::key, hex(hash(file))};
  KIN_TRY(backend.put(name, file));
  KIN_TRY(backend.sync());
  // Proof before use: a key that cannot be opened again would lock its owner out.
  KIN_TRY_ASSIGN(const Bytes stored, backend.get(name));
  KIN_TRY_ASSIGN(const Key opened, open_key_file(stored, password));
  if (opened != master_key) return Error(ErrorCode::corrupt, "the new key does not open as it was written");
  return name.name;
}

}  // namespace kin::store
