// What a repository's access permits, and what is done to its config and keys.
#include "store/repository.h"

namespace kin::store {

Result<void> Repository::require_known_features() const {
  if (config_.writable) return {};
  return Error(ErrorCode::unsupported,
               "the repository has features that a newer kin is needed to write; this one can only read it");
}

Result<void> Repository::require_writable() const {
  KIN_TRY(require_known_features());
  return permit_adding(config_.access);
}

Result<void> Repository::require_removable() const {
  KIN_TRY(require_known_features());
  return permit_removing(config_.access);
}

Result<void> Repository::replace_config(const Config& config) {
  KIN_TRY(backend_->put(config_name(), encode_config(config, master_key_)));
  return backend_->sync();
}

Result<void> Repository::set_access(Access access) {
  KIN_TRY(require_known_features());
  Config config = config_;
  config.access = access;
  return replace_config(config);
}

Result<std::string> Repository::add_key(const std::string& password, const PasswordCost& cost) {
  KIN_TRY(require_writable());
  return store::add_key(*backend_, master_key_, password, cost);
}

Result<void> Repository::remove_key(const std::string& name) {
  KIN_TRY(require_removable());
  return backend_->remove({FileKind::key, name});
}

Result<std::string> Repository::replace_key(const std::string& password, const PasswordCost& cost) {
  KIN_TRY(require_removable());
  KIN_TRY_ASSIGN(std::string name, add_key(password, cost));
  KIN_TRY(remove_key(key_name_));
  return name;
}

}  // namespace kin::store
