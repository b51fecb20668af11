// A peer that says anything: every message that a replica had is still there, or was told to go by a stamp.
#include "lib/sync/replica_scan.h"
#include "lib/sync/session.h"
#include "tests/support/memory_store.h"
#include "tests/support/memory_table.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kin;
  static const std::string directory = [] {
    std::string path = (std::filesystem::temp_directory_path() / "kin-fuzz-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) std::abort();
    return path;
  }();
  testing::MemoryTable table;
  testing::MemoryStore store;
  store.put_message("", "one", "the first message\n", sync::kSeen);
  store.put_message("Lists", "two", "the second message\n");
  auto replica = sync::Replica::open(table, "here");
  if (!replica) std::abort();
  if (!sync::scan_store(store, true, **replica, {}, {})) std::abort();
  sync::BaseFinder bases(**replica, nullptr);
  sync::ContentFiles trash(directory + "/trash"), incoming(directory + "/incoming");
  sync::SessionOptions options;
  options.kind = 1;
  options.is_initiator = size > 0 && data[0] % 2 == 1;
  sync::Session session({**replica, store, bases, trash, incoming}, options, {});
  sync::FrameReader reader;
  reader.add({data + (size > 0 ? 1 : 0), size > 0 ? size - 1 : 0});
  for (int frames = 0; frames < 64; ++frames) {
    const auto frame = reader.next();
    if (!frame || !*frame || !session.receive(**frame) || !session.settle()) break;
    for (auto more = session.next(); more && *more; more = session.next()) {
    }
  }
  session.abandon();
  for (const auto& [folder, entries] : store.contents)
    for (const auto& [local, stored] : entries)
      if (!sync::check_item(stored.item)) std::abort();
  return 0;
}
