#include "lib/sync/unheld_words.h"

#include "lib/base/wire.h"

#include <algorithm>
#include <iterator>

namespace kin::sync {
namespace {

Bytes key_of_words(const ItemId& message) {
  Bytes key{'w'};
  append(key, message);
  return key;
}

}  // namespace

Result<void> note_unheld_words(Replica& replica, const ItemId& message,
                               const std::vector<std::string>& wanted, const std::vector<std::string>& held) {
  std::vector<std::string> unheld;
  std::set_difference(wanted.begin(), wanted.end(), held.begin(), held.end(), std::back_inserter(unheld));
  const Bytes key = key_of_words(message);
  KIN_TRY_ASSIGN(const std::optional<Bytes> before, replica.note(key));
  if (unheld.empty() && !before) return {};
  WireWriter out;
  out.varint(unheld.size());
  for (const std::string& word : unheld) out.text(word);
  replica.set_note(key, unheld.empty() ? std::nullopt : std::optional<Bytes>(out.take()));
  return {};
}

Result<void> add_unheld_words(Replica& replica, const ItemId& message, std::vector<std::string>& words) {
  KIN_TRY_ASSIGN(const std::optional<Bytes> noted, replica.note(key_of_words(message)));
  if (!noted) return {};
  WireReader in(*noted);
  std::vector<std::string> unheld;
  for (std::size_t left = in.count(1); left > 0 && !in.failed(); --left) unheld.push_back(in.text());
  KIN_TRY(in.finish("keywords of a message"));
  KIN_TRY(note_unheld_words(replica, message, unheld, words));
  std::vector<std::string> all;
  std::set_union(words.begin(), words.end(), unheld.begin(), unheld.end(), std::back_inserter(all));
  words = std::move(all);
  return {};
}

}  // namespace kin::sync
