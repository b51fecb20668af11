#include "lib/base/check.h"
#include "lib/sync/sync_store.h"

namespace kin::sync {

int detect_maildir(const std::string& root);
int detect_mbox(const std::string& root);
int detect_mh(const std::string& root);
int detect_tree(const std::string& root);
Result<std::unique_ptr<SyncStore>> open_maildir(const std::string& root);
Result<std::unique_ptr<SyncStore>> open_mbox(const std::string& root);
Result<std::unique_ptr<SyncStore>> open_mh(const std::string& root);
Result<std::unique_ptr<SyncStore>> open_tree(const std::string& root);

namespace {

constexpr StoreKind kKinds[] = {
    // number on the wire, name, summary, mail, detect, open
    {1, "maildir", "Maildir and Maildir++: cur, new and tmp", true, detect_maildir, open_maildir},
    {2, "mh", "MH: a file per message, named by numbers", true, detect_mh, open_mh},
    {3, "mbox", "mbox: a file per folder", true, detect_mbox, open_mbox},
    {4, "tree", "any directory", false, detect_tree, open_tree},
};

}  // namespace

std::span<const StoreKind> store_kinds() { return kKinds; }

const StoreKind* find_store_kind(std::string_view name) {
  for (const StoreKind& kind : kKinds)
    if (name == kind.name) return &kind;
  return nullptr;
}

const StoreKind* find_store_kind(std::uint8_t number) {
  for (const StoreKind& kind : kKinds)
    if (number == kind.number) return &kind;
  return nullptr;
}

const StoreKind& detect_store_kind(const std::string& root) {
  const StoreKind* best = find_store_kind("tree");
  int surest = 0;
  for (const StoreKind& kind : kKinds)
    if (const int sure = kind.detect(root); sure > surest) {
      surest = sure;
      best = &kind;
    }
  KIN_CHECK(best != nullptr);
  return *best;
}

}  // namespace kin::sync
