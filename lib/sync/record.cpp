#include "lib/sync/record.h"

#include "lib/delta/codec.h"

#include <map>

namespace kin::sync {
namespace {

constexpr int kRecordsLevel = 19;  // of some kilobytes at most
constexpr std::size_t kMostBatchBytes = 4 << 20;
constexpr std::size_t kMostRecords = 20'000;
constexpr std::size_t kMostExpandedBytes = 32 << 20;  // texts that many records share

bool has_place(Record::Kind kind) { return kind == Record::Kind::move || kind == Record::Kind::place; }
bool has_reference(Record::Kind kind) { return kind <= Record::Kind::place; }
bool has_flags(Record::Kind kind) { return kind == Record::Kind::update || has_place(kind); }
bool has_item(Record::Kind kind) { return kind == Record::Kind::full || kind == Record::Kind::announce; }

// Each value once, in the order in which they first come, and then by number.
template <class Value>
class Distinct {
 public:
  std::uint64_t number_of(const Value& value) {
    const auto [at, is_new] = numbers_.try_emplace(value, values_.size());
    if (is_new) values_.push_back(value);
    return at->second;
  }
  const std::vector<Value>& values() const { return values_; }

 private:
  std::map<Value, std::uint64_t> numbers_;
  std::vector<Value> values_;
};

class StampColumn {
 public:
  explicit StampColumn(Distinct<ReplicaId>& replicas) : replicas_(replicas) {}

  void put(const Stamp& stamp) {
    out_.varint(replicas_.number_of(stamp.replica));
    out_.signed_varint(static_cast<std::int64_t>(stamp.sequence - before_ - 1));
    before_ = stamp.sequence;
  }
  const Bytes& bytes() const { return out_.bytes(); }

 private:
  Distinct<ReplicaId>& replicas_;
  std::uint64_t before_ = 0;
  WireWriter out_;
};

class StampReader {
 public:
  explicit StampReader(const std::vector<ReplicaId>& replicas) : replicas_(replicas) {}

  Stamp get(WireReader& in) {
    const std::uint64_t number = in.varint();
    before_ += static_cast<std::uint64_t>(in.signed_varint()) + 1;
    if (number >= replicas_.size() || before_ == 0 || before_ > std::uint64_t{1} << 62) {
      in.fail();
      return {};
    }
    return {replicas_[number], before_};
  }

 private:
  const std::vector<ReplicaId>& replicas_;
  std::uint64_t before_ = 0;
};

std::string text_of(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += word + '\n';
  return out;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  // One more than may be is enough to be refused.
  for (std::size_t end; out.size() <= kMostWords && (end = text.find('\n')) != std::string_view::npos;
       text.remove_prefix(end + 1))
    out.emplace_back(text.substr(0, end));
  return out;
}

}  // namespace

std::size_t record_bytes(const Record& record) {
  std::size_t out = 24 + record.reference.size() + record.item.folder.size() + record.item.name.size() +
                    record.item.target.size();
  for (const std::string& word : record.item.words) out += word.size();
  return has_item(record.kind) ? out + 60 : out;
}

Bytes encode_records(const std::vector<Record>& records) {
  Distinct<ReplicaId> replicas;
  Distinct<std::string> texts;
  StampColumn stamps(replicas), removed(replicas);
  WireWriter kinds, references, places, flags, items, merged;
  std::uint64_t at = 0, merged_before = 0, merges = 0;
  StampColumn replaces(replicas);
  for (const Record& record : records) {
    kinds.u8(static_cast<std::uint8_t>(record.kind));
    stamps.put(record.stamp);
    if (record.kind == Record::Kind::move) removed.put(record.removed);
    if (has_reference(record.kind)) {
      // The length stands in the column of flags: references are noise, and everything else compresses.
      flags.u8(static_cast<std::uint8_t>(record.reference.size()));
      references.raw(record.reference);
    }
    if (has_place(record.kind)) {
      places.varint(texts.number_of(record.item.folder));
      places.varint(record.item.copy);
    }
    if (has_flags(record.kind)) {
      flags.u8(record.item.flags);
      flags.varint(texts.number_of(text_of(record.item.words)));
    }
    if (has_item(record.kind)) encode_item(record.item, items);
    if (record.replaces.replica != 0) {
      merged.varint(at - merged_before);
      merged_before = at;
      ++merges;
      replaces.put(record.replaces);
    }
    ++at;
  }
  WireWriter plain;
  plain.varint(records.size());
  plain.raw(kinds.bytes());
  plain.varint(replicas.values().size());
  for (const ReplicaId replica : replicas.values()) plain.u64(replica);
  plain.varint(texts.values().size());
  for (const std::string& text : texts.values()) plain.text(text);
  plain.varint(merges);
  plain.raw(merged.bytes());
  for (const Bytes* column : {&replaces.bytes(), &stamps.bytes(), &removed.bytes(), &flags.bytes(),
                              &places.bytes(), &references.bytes(), &items.bytes()})
    plain.raw(*column);
  const auto codec = find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(kRecordsLevel);
  auto packed = codec->encode({}, plain.bytes());
  WireWriter out;
  const bool pays = packed && packed->size() < plain.size();
  out.varint(pays ? plain.size() : 0);
  out.raw(pays ? *packed : plain.bytes());
  return out.take();
}

Result<std::vector<Record>> decode_records(ByteView bytes) {
  WireReader outer(bytes);
  const std::uint64_t size = outer.varint_up_to(kMostBatchBytes);
  const ByteView payload = outer.raw(outer.left());
  KIN_TRY(outer.finish("a batch of records"));
  Bytes unpacked;
  if (size > 0) {
    const auto codec = find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(kRecordsLevel);
    KIN_TRY_ASSIGN(unpacked, codec->decode({}, payload, size));
  }
  WireReader in(size > 0 ? ByteView(unpacked) : payload);
  const std::size_t count = in.count(2);
  if (count > kMostRecords || in.left() > kMostBatchBytes)
    return Error(ErrorCode::corrupt, "a batch of too many records");
  std::vector<Record> out(count);
  for (Record& record : out) {
    const std::uint8_t kind = in.u8();
    if (kind > static_cast<std::uint8_t>(Record::Kind::announce)) in.fail();
    record.kind = static_cast<Record::Kind>(kind);
  }
  std::vector<ReplicaId> replicas(in.count(8, 3 * count));
  for (ReplicaId& replica : replicas) {
    replica = in.u64();
    if (replica == 0) in.fail();
  }
  std::vector<std::string> texts(in.count(1, 2 * count));  // a folder and words of each
  for (std::string& text : texts) text = in.text();
  std::vector<std::size_t> merged(in.count(1, count));
  for (std::size_t i = 0, at = 0; i < merged.size(); ++i) {
    const std::uint64_t step = in.varint_up_to(out.size());
    at += step;
    if (at >= out.size() || (i > 0 && step == 0)) in.fail();
    merged[i] = at;
  }
  KIN_TRY(in.failed() ? Error(ErrorCode::corrupt, "a batch of records is damaged") : Result<void>());
  StampReader replaces(replicas), stamps(replicas), removed(replicas);
  for (const std::size_t at : merged) out[at].replaces = replaces.get(in);
  for (Record& record : out) record.stamp = stamps.get(in);
  for (Record& record : out)
    if (record.kind == Record::Kind::move) record.removed = removed.get(in);
  std::size_t expanded = 0;
  const auto text_at = [&](std::uint64_t number) {
    if (number < texts.size() && (expanded += texts[number].size()) <= kMostExpandedBytes)
      return texts[number];
    in.fail();
    return std::string();
  };
  std::vector<std::size_t> lengths(out.size());
  for (std::size_t i = 0; i < out.size() && !in.failed(); ++i) {
    if (has_reference(out[i].kind)) {
      lengths[i] = in.u8();
      if (lengths[i] < kLeastReferenceBytes || lengths[i] > sizeof(ItemId)) in.fail();
    }
    if (has_flags(out[i].kind)) {
      out[i].item.flags = in.u8();
      out[i].item.words = words_of(text_at(in.varint()));
    }
  }
  for (std::size_t i = 0; i < out.size() && !in.failed(); ++i)
    if (has_place(out[i].kind)) {
      out[i].item.folder = text_at(in.varint());
      out[i].item.copy = static_cast<std::uint32_t>(in.varint_up_to(UINT32_MAX));
    }
  for (std::size_t i = 0; i < out.size() && !in.failed(); ++i)
    if (has_reference(out[i].kind)) {
      const ByteView reference = in.raw(lengths[i]);
      out[i].reference.assign(reference.begin(), reference.end());
    }
  for (std::size_t i = 0; i < out.size() && !in.failed(); ++i)
    if (has_item(out[i].kind))
      out[i].item = decode_item(in);
    else
      KIN_TRY(check_item(out[i].item));
  KIN_TRY(in.finish("a batch of records"));
  return out;
}

}  // namespace kin::sync
