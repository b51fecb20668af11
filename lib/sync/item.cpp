#include "lib/sync/item.h"

#include <algorithm>
#include <cstring>

namespace kin::sync {
namespace {

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

bool is_safe_component(std::string_view name) {
  return !name.empty() && name.size() <= kMostNameBytes && name != "." && name != ".." && !has_nul(name) &&
         name.find('/') == std::string_view::npos;
}

bool is_safe_path(std::string_view path) {
  if (path.size() > kMostFolderBytes) return false;
  for (;;) {
    const std::size_t slash = path.find('/');
    if (!is_safe_component(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool are_good_words(const std::vector<std::string>& words) {
  if (words.size() > kMostWords) return false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.empty() || word.size() > kMostWordBytes || has_nul(word) || word.find('\n') != std::string::npos)
      return false;
    if (i > 0 && words[i - 1] >= word) return false;
  }
  return true;
}

void encode_words(const std::vector<std::string>& words, WireWriter& out) {
  out.varint(words.size());
  for (const std::string& word : words) out.text(word);
}

// What tells states of one item apart.
void encode_state(const Item& item, WireWriter& out) {
  out.u8(static_cast<std::uint8_t>(item.type));
  switch (item.type) {
    case ItemType::message:
      out.u8(item.flags);
      encode_words(item.words, out);
      return;
    case ItemType::file:
      out.raw(item.object.bytes);
      out.varint(item.mode);
      out.signed_varint(item.time.seconds);
      out.varint(item.time.nanoseconds);
      return;
    case ItemType::directory:
      out.varint(item.mode);
      return;
    case ItemType::symlink:
      out.text(item.target);
      return;
    case ItemType::words:
      encode_words(item.words, out);
      return;
  }
}

}  // namespace

ItemId item_id(const Item& item) {
  WireWriter out;
  const bool is_message = item.type == ItemType::message;
  out.u8(is_message ? 'm' : 'p');
  out.text(item.folder);
  if (is_message) {
    out.raw(item.object.bytes);
    out.varint(item.copy);
  } else {
    out.text(item.name);
  }
  const Digest digest = hash(out.bytes());
  ItemId id;
  std::copy_n(digest.begin(), id.size(), id.begin());
  return id;
}

StateHash state_hash(const Item& item) {
  WireWriter out;
  out.raw(item_id(item));
  encode_state(item, out);
  const Digest digest = hash(out.bytes());
  WireReader in(digest);
  const std::uint64_t low = in.u64();
  return {low, in.u64()};
}

bool same_state(const Item& a, const Item& b) { return state_hash(a) == state_hash(b); }

ObjectId object_id(ByteView content) { return ObjectId{hash(content)}; }

void encode_item(const Item& item, WireWriter& out) {
  out.u8(static_cast<std::uint8_t>(item.type));
  out.text(item.folder);
  out.text(item.name);
  out.raw(item.object.bytes);
  out.varint(item.size);
  out.varint(item.copy);
  out.u8(item.flags);
  encode_words(item.words, out);
  out.signed_varint(item.time.seconds);
  out.varint(item.time.nanoseconds);
  out.varint(item.mode);
  out.text(item.target);
}

Item decode_item(WireReader& in) {
  Item item;
  item.type = static_cast<ItemType>(in.u8());
  item.folder = in.text();
  item.name = in.text();
  item.object.bytes = in.array<32>();
  item.size = in.varint();
  item.copy = static_cast<std::uint32_t>(in.varint_up_to(UINT32_MAX));
  item.flags = in.u8();
  const std::size_t words = in.count(1);
  for (std::size_t i = 0; i < words && !in.failed(); ++i) item.words.push_back(in.text());
  item.time.seconds = in.signed_varint();
  item.time.nanoseconds = static_cast<std::uint32_t>(in.varint_up_to(999'999'999));
  item.mode = static_cast<std::uint32_t>(in.varint_up_to(kAllModes));
  item.target = in.text();
  if (!in.failed() && !check_item(item)) in.fail();
  return item;
}

Result<void> check_item(const Item& item) {
  const auto refuse = [&](const char* what) {
    return Error(ErrorCode::corrupt, std::string("an item with ") + what + ": " + printable(item.folder) +
                                         "/" + printable(item.name));
  };
  if (item.type < ItemType::message || item.type > ItemType::words) return refuse("an unknown type");
  if (!item.folder.empty() && !is_safe_path(item.folder)) return refuse("a folder that cannot be");
  const bool is_message = item.type == ItemType::message;
  // A message's name is a hint, and may be missing; a mail folder's is a path.
  const bool name_is_good =
      (is_message && item.name.empty()) || is_safe_component(item.name) ||
      (item.type == ItemType::directory && item.folder.empty() && is_safe_path(item.name));
  if (!name_is_good) return refuse("a name that cannot be");
  if ((item.flags & ~kAllFlags) != 0 || (!is_message && item.flags != 0)) return refuse("unknown flags");
  if (!is_message && item.copy != 0) return refuse("a copy number");
  if (!are_good_words(item.words)) return refuse("words that cannot be");
  if (item.mode > kAllModes) return refuse("a mode that cannot be");
  if (item.target.size() > kMostFolderBytes || has_nul(item.target) ||
      (item.type == ItemType::symlink) == item.target.empty())
    return refuse("a link that cannot be");
  return {};
}

}  // namespace kin::sync
