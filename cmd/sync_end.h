// One end of an exchange: a store, what is known of it, and where its contents wait.
#pragma once

#include "cmd/context.h"
#include "formats/formats.h"
#include "lib/sync/mounted_store.h"
#include "lib/sync/replica_scan.h"
#include "lib/sync/session.h"
#include "store/feature_index.h"

#include <memory>
#include <string>

namespace kin::cmd {

struct SyncEndOptions {
  std::string root;
  std::string kind;           // empty: to be found out
  std::string kind_if_empty;  // where there is nothing to find it out by
  bool must_exist = false;    // what is copied from is not made
  std::string state;          // where states are kept; empty: the default place
  bool must_see_all = false;  // what is not seen of it is deleted at the other end
};

class SyncEnd {
 public:
  // busy if another exchange of this store is under way.
  static Result<std::unique_ptr<SyncEnd>> open(Context& context, const SyncEndOptions& options);

  const sync::StoreKind& kind() const { return *kind_; }
  bool kind_is_open() const { return kind_is_open_; }  // there is nothing to find it out by
  sync::Replica& replica() { return *replica_; }
  sync::SyncStore& store() { return *store_; }
  sync::ContentFiles& trash() { return trash_; }
  const std::string& root() const { return root_; }
  sync::SessionParts parts() { return {*replica_, *store_, *bases_, trash_, incoming_, &formats::all()}; }

  // `on_progress` is called now and then.
  Result<sync::ScanCounts> scan(Context& context, const std::function<void()>& on_progress = {});
  std::uint64_t skipped() const { return skipped_; }
  void skip(Context& context, const std::string& what, const Error& error);
  // The store was made here for a kind that it is not to be.
  void take_back();
  // What was learnt of contents is kept for the next time.
  void finish();

 private:
  SyncEnd(std::string root, std::string directory);
  Result<void> forget_old_trash();

  const std::string root_, directory_;
  const sync::StoreKind* kind_ = nullptr;
  bool kind_is_open_ = false, made_root_ = false, must_see_all_ = false;
  std::uint64_t skipped_ = 0;
  sync::ContentFiles trash_, incoming_;
  std::unique_ptr<sync::Table> table_;
  std::unique_ptr<sync::Replica> replica_;
  std::unique_ptr<store::FeatureIndex> features_;
  std::unique_ptr<sync::BaseFinder> bases_;
  std::unique_ptr<sync::MountedStore> store_;
};

}  // namespace kin::cmd
