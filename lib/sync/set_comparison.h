// SetComparison: which items two replicas do not have in common, found by coded symbols (coded_symbols.h):
// in bytes that go by the number of differences, not of items. The responder makes symbols, the initiator
// compares them with its own until it knows, and tells the outcome. One thread at a time.
#pragma once

#include "lib/sync/coded_symbols.h"
#include "lib/sync/replica.h"

#include <memory>
#include <optional>
#include <vector>

namespace kin::sync {

class SetComparison {
 public:
  // The key follows from both hellos, so that nobody can choose items that collide. `own_items` and
  // `peer_items` are how many there are, as the hellos say. The replica must outlive it.
  SetComparison(Replica& replica, ByteView initiator_hello, ByteView responder_hello, std::uint64_t own_items,
                std::uint64_t peer_items);

  // An end without items lacks all that the other one has: neither symbols nor a difference are needed.
  bool is_plain() const { return own_items_ == 0 || peer_items_ == 0; }
  Result<std::vector<ItemId>> all_ours();

  // Payloads of frames. The responder's symbols, first of all and when more are asked for.
  Result<Bytes> first_symbols();
  Result<Bytes> answer_more(ByteView more);

  // The initiator's: a request for more, or nothing: it is known now.
  Result<std::optional<Bytes>> take_symbols(ByteView symbols);
  bool is_known() const { return is_known_; }
  // What is known, for the responder; `with_contents` if they are to come, else only their names.
  Bytes difference(bool with_contents) const;
  const std::vector<ItemId>& only_ours() const { return only_ours_; }
  // The answer to that; of those that only we have, in the order of the difference.
  struct Elsewise {
    std::vector<ItemId> missing;  // there
    std::vector<ItemId> told_of;  // in another state there, or deleted: the responder tells of them
  };
  Result<Elsewise> take_elsewise(ByteView elsewise) const;

  // At the responder.
  struct Difference {
    bool with_contents = false;
    std::vector<ItemId> wanted;    // the initiator has them not, or in another state
    std::vector<ItemId> elsewise;  // of those: in another state
    std::vector<ItemId> deleted;   // the initiator has them, and they were here
    Bytes told_of;  // a bit for each item of the initiator's: whether it is one of the last two
  };
  Result<Difference> take_difference(ByteView difference);

 private:
  ShortId short_id(const Item& item) const;
  Result<std::vector<CodedSymbol>> make(std::size_t first, std::size_t count);
  Result<Bytes> symbols(std::size_t count);
  std::uint64_t most_symbols() const;

  Replica& replica_;
  const std::uint64_t own_items_, peer_items_;
  std::uint64_t key_ = 0;
  std::size_t sent_ = 0, asked_for_, rounds_ = 0;
  std::unique_ptr<SymbolDecoder> decoder_;
  bool is_known_ = false;
  std::vector<ItemId> only_ours_;
  std::vector<ShortId> only_theirs_;
};

}  // namespace kin::sync
