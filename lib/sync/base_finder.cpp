#include "lib/sync/base_finder.h"

#include <algorithm>
#include <cctype>

namespace kin::sync {
namespace {

constexpr std::size_t kMostHeaderBytes = 64 << 10;
constexpr std::size_t kMostReferences = 3;  // of a thread, the nearest ones
constexpr std::size_t kLastOnes = 4;        // of a sender: some of them the other end does not have yet
constexpr std::size_t kMostKin = 6;
constexpr std::size_t kObjectBytes = sizeof(ObjectId);

// What identifies a message and those near it.
struct Hints {
  std::string id;                       // Message-ID
  std::vector<std::string> references;  // nearest first
  std::string circle;                   // sender and list
};

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

// "<a@b>" of a field, each.
std::vector<std::string> ids_in(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t begin; (begin = text.find('<')) != std::string_view::npos;) {
    const std::size_t end = text.find('>', begin);
    if (end == std::string_view::npos) break;
    out.emplace_back(text.substr(begin, end - begin + 1));
    text.remove_prefix(end + 1);
  }
  return out;
}

std::string address_in(std::string_view text) {
  const std::vector<std::string> ids = ids_in(text);
  return lower_case(ids.empty() ? text : std::string_view(ids.back()));
}

Hints read_hints(ByteView content) {
  Hints hints;
  std::string from, list, in_reply_to, references;
  std::string_view rest = as_text(content.first(std::min(content.size(), kMostHeaderBytes)));
  std::string* field = nullptr;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) break;
    if (line[0] == ' ' || line[0] == '\t') {
      if (field != nullptr) field->append(line);
      continue;
    }
    field = nullptr;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string name = lower_case(line.substr(0, colon));
    if (name == "message-id") field = &hints.id;
    if (name == "from") field = &from;
    if (name == "list-id") field = &list;
    if (name == "in-reply-to") field = &in_reply_to;
    if (name == "references") field = &references;
    if (field != nullptr) *field = line.substr(colon + 1);
  }
  const auto ids = ids_in(hints.id);
  hints.id = ids.empty() ? "" : ids.front();
  hints.references = ids_in(in_reply_to);
  const auto thread = ids_in(references);
  hints.references.insert(hints.references.end(), thread.rbegin(), thread.rend());
  std::vector<std::string> distinct;
  for (std::string& reference : hints.references)
    if (distinct.size() < kMostReferences &&
        std::find(distinct.begin(), distinct.end(), reference) == distinct.end())
      distinct.push_back(std::move(reference));
  hints.references = std::move(distinct);
  if (!from.empty()) hints.circle = address_in(from) + "\n" + address_in(list);
  return hints;
}

Bytes hint_key(char kind, std::string_view text) {
  const Digest digest = hash(as_bytes(text));
  Bytes out(9);
  out[0] = static_cast<std::uint8_t>(kind);
  std::copy_n(digest.begin(), 8, out.begin() + 1);
  return out;
}

std::vector<ObjectId> objects_in(const std::optional<Bytes>& row) {
  std::vector<ObjectId> out;
  if (row && row->size() % kObjectBytes == 0)
    for (std::size_t at = 0; at < row->size(); at += kObjectBytes)
      out.push_back(ObjectId::from_bytes(ByteView(*row).subspan(at, kObjectBytes)));
  return out;
}

}  // namespace

// Cuts and features of exchanges are no secret of a repository, so the key is none.
BaseFinder::BaseFinder(Replica& replica, OpenFeatures open_features)
    : replica_(replica), open_features_(std::move(open_features)), scanner_(Key{}, 8) {}

FeatureStore* BaseFinder::features() {
  if (!features_) features_ = open_features_ ? open_features_() : nullptr;
  return *features_;
}

Result<void> BaseFinder::add(const ObjectId& object, ByteView content) {
  const Hints hints = read_hints(content);
  if (!hints.id.empty())
    replica_.set_note(hint_key('m', hints.id), Bytes(object.bytes.begin(), object.bytes.end()));
  if (!hints.circle.empty()) {
    const Bytes key = hint_key('l', hints.circle);
    KIN_TRY_ASSIGN(const auto row, replica_.note(key));
    std::vector<ObjectId> last = objects_in(row);
    std::erase(last, object);
    last.insert(last.begin(), object);
    last.resize(std::min(last.size(), kLastOnes));
    Bytes value;
    for (const ObjectId& one : last) append(value, one.bytes);
    replica_.set_note(key, std::move(value));
  }
  if (features() != nullptr) KIN_TRY(features()->add(object, scanner_.sketch(content)));
  return {};
}

Result<std::vector<ObjectId>> BaseFinder::find(ByteView content) {
  std::vector<ObjectId> out;
  const auto take = [&](const std::vector<ObjectId>& objects) {
    for (const ObjectId& object : objects)
      if (std::find(out.begin(), out.end(), object) == out.end()) out.push_back(object);
  };
  const Hints hints = read_hints(content);
  for (const std::string& reference : hints.references) {
    KIN_TRY_ASSIGN(const auto row, replica_.note(hint_key('m', reference)));
    take(objects_in(row));
  }
  if (features() != nullptr) {
    const Sketch sketch = scanner_.sketch(content);
    const Sketch* const one = &sketch;
    KIN_TRY(features()->prefetch({&one, 1}));
    KIN_TRY_ASSIGN(const auto candidates, features()->candidates(sketch, kMostKin));
    for (const Candidate& candidate : candidates) take({candidate.id});
  }
  if (!hints.circle.empty()) {
    KIN_TRY_ASSIGN(const auto row, replica_.note(hint_key('l', hints.circle)));
    take(objects_in(row));
  }
  return out;
}

}  // namespace kin::sync
