// What another end says outside of records and parcels, each by itself: signs between exchanges, symbols of a
// set, and what becomes of a comparison. The first byte says which of these the rest is.
#include "lib/base/check.h"
#include "lib/sync/pause.h"
#include "lib/sync/replica_scan.h"
#include "lib/sync/set_comparison.h"
#include "lib/sync/unheld_words.h"
#include "tests/support/memory_store.h"
#include "tests/support/memory_table.h"

#include <algorithm>
#include <cstdint>
#include <memory>

namespace {

using namespace kin;
using namespace kin::sync;

// A store of twenty messages, and what is known of it.
struct Known {
  testing::MemoryTable table;
  testing::MemoryStore store;
  std::unique_ptr<Replica> replica;

  Known() {
    for (int i = 0; i < 20; ++i)
      store.put_message("", std::to_string(i), "message " + std::to_string(i) + "\n");
    auto opened = Replica::open(table, "here");
    KIN_CHECK(opened.has_value());
    replica = *std::move(opened);
    KIN_CHECK(scan_store(store, true, *replica, {}, {}).has_value());
  }
  static Known& one() {
    static Known known;
    return known;
  }
};

void read_frames(ByteView input) {
  const Pause::Time start{};
  Pause pause(!input.empty() && (input[0] & 1) != 0, start);
  FrameReader reader;
  reader.add(input.subspan(std::min<std::size_t>(1, input.size())));
  for (int i = 0; i < 1000; ++i) {
    const auto frame = reader.next();
    if (!frame || !*frame) return;
    if (!pause.receive(**frame, start + std::chrono::seconds(i))) return;
    static_cast<void>(pause.next(start + std::chrono::seconds(i)));
  }
}

// Of a set of which nothing is known: what is found is never there twice.
void read_symbols(ByteView input) {
  SymbolDecoder decoder(7);
  for (WireReader in(input); in.left() > 0;) {
    const std::size_t count = 1 + in.u8() % 64;
    const auto theirs = decode_symbols(decoder.symbols(), count, 20, in);
    if (in.failed()) return;
    SymbolMaker ours(7, decoder.symbols(), count);
    for (ShortId id = 1; id <= 20; ++id) ours.add(id * 0x9e3779b97f4a7c15);
    decoder.add(theirs, ours.symbols());
    static_cast<void>(decoder.likely_needed());
    if (decoder.failed()) return;
  }
  if (!decoder.done()) return;
  std::vector<ShortId> found = decoder.only_theirs();
  found.insert(found.end(), decoder.only_ours().begin(), decoder.only_ours().end());
  std::sort(found.begin(), found.end());
  KIN_CHECK(std::adjacent_find(found.begin(), found.end()) == found.end());
}

// The whole comparison, of the end that begins: frames' payloads, each behind its length.
void compare(ByteView input) {
  SetComparison comparison(*Known::one().replica, as_bytes("one"), as_bytes("other"), 20, 20);
  KIN_CHECK(comparison.first_symbols().has_value());
  WireReader in(input);
  while (in.left() > 0 && !comparison.is_known()) {
    const ByteView payload = in.blob();
    if (in.failed() || !comparison.take_symbols(payload)) return;
  }
  if (!comparison.is_known()) return;
  static_cast<void>(comparison.difference(true));
  KIN_CHECK(comparison.only_ours().size() <= 20);
  const auto elsewise = comparison.take_elsewise(in.raw(in.left()));
  if (elsewise)
    KIN_CHECK(elsewise->missing.size() + elsewise->told_of.size() <= comparison.only_ours().size());
}

// And of the end that answers.
void answer(ByteView input) {
  SetComparison comparison(*Known::one().replica, as_bytes("one"), as_bytes("other"), 20, 20);
  WireReader in(input);
  for (std::size_t more = in.u8() % 4; more > 0; --more)
    if (!comparison.answer_more(in.blob())) return;
  const auto difference = comparison.take_difference(in.raw(in.left()));
  if (difference) KIN_CHECK(difference->wanted.size() <= 20 && difference->elsewise.size() <= 20);
}

// Not from another end, but from a damaged table.
void read_unheld(ByteView input) {
  testing::MemoryTable table;
  const auto replica = Replica::open(table, "here");
  KIN_CHECK(replica.has_value());
  const ItemId message{};
  KIN_CHECK(note_unheld_words(**replica, message, {"word"}, {}).has_value());
  std::vector<Bytes> keys;
  const auto listed = (*replica)->for_each_note(as_bytes("w"), [&](ByteView key, ByteView) -> Result<void> {
    keys.emplace_back(key.begin(), key.end());
    return {};
  });
  KIN_CHECK(listed && keys.size() == 1);
  (*replica)->set_note(keys[0], Bytes(input.begin(), input.end()));
  std::vector<std::string> words{"held"};
  static_cast<void>(add_unheld_words(**replica, message, words));
  KIN_CHECK(std::find(words.begin(), words.end(), "held") != words.end());
}

constexpr void (*kParts[])(ByteView) = {read_frames, read_symbols, compare, answer, read_unheld};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 0) kParts[data[0] % std::size(kParts)]({data + 1, size - 1});
  return 0;
}
