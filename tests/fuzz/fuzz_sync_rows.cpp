// What is known of a store, from a damaged table: it is refused, or leads to nothing but a longer exchange.
// The input is rows: the length of a key and of a value, a byte each, and both.
#include "lib/base/check.h"
#include "lib/sync/replica.h"
#include "lib/sync/replica_scan.h"
#include "tests/support/memory_store.h"
#include "tests/support/memory_table.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kin;
  testing::MemoryTable table;
  sync::TableBatch rows;
  for (ByteView rest(data, size); rest.size() >= 2;) {
    const std::size_t key = rest[0], value = rest[1];
    rest = rest.subspan(2);
    if (key + value > rest.size()) break;
    const ByteView bytes = rest.subspan(key, value);
    rows.put(Bytes(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(key)),
             Bytes(bytes.begin(), bytes.end()));
    rest = rest.subspan(key + value);
  }
  KIN_CHECK(table.commit(rows, true).has_value());
  static_cast<void>(sync::Replica::known_items(table));
  auto replica = sync::Replica::open(table, "here");
  if (!replica) return 0;
  if ((*replica)->was_copied() && !(*replica)->start_anew({})) return 0;
  testing::MemoryStore store;
  store.put_message("", "one", "the first message\n", sync::kSeen);
  store.put_message("Lists", "two", "the second message\n");
  const auto before = store.view();
  static_cast<void>(sync::scan_store(store, true, **replica, {}, {}));
  static_cast<void>((*replica)->for_each_live([](const sync::KnownItem&) { return Result<void>(); }));
  static_cast<void>((*replica)->for_each_unseen({}, [](const sync::KnownItem&) { return Result<void>(); }));
  static_cast<void>((*replica)->forget_deleted(INT64_MAX));
  KIN_CHECK(store.view() == before);
  return 0;
}
