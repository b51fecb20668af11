#include "store/marks.h"

#include "lib/base/hash.h"
#include "lib/base/text.h"
#include "lib/base/wire.h"

#include <algorithm>

namespace kin::store {
namespace {

constexpr std::string_view kMarksMagic = "KINMARK1";
constexpr std::uint8_t kMarksVersion = 1;
constexpr std::uint64_t kMostGenerations = std::uint64_t{1} << 62;  // there is always a next one

void write_generations(WireWriter& out, const std::map<ObjectId, std::uint64_t>& entries) {
  out.varint(entries.size());
  for (const auto& [id, generation] : entries) {
    out.raw(id.bytes);
    out.varint(generation);
  }
}

std::map<ObjectId, std::uint64_t> read_generations(WireReader& in) {
  std::map<ObjectId, std::uint64_t> out;
  for (std::size_t left = in.count(33); left > 0 && !in.failed(); --left) {
    const ObjectId id{in.array<32>()};
    if (!out.empty() && !(out.rbegin()->first < id)) in.fail();
    out.emplace_hint(out.end(), id, in.varint());
  }
  return out;
}

}  // namespace

Bytes encode_marks(const Marks& marks) {
  WireWriter out;
  out.u8(kMarksVersion);
  out.varint(marks.generation);
  out.varint(marks.last_sweep);
  write_generations(out, marks.packs);
  out.varint(marks.sweeping.size());
  for (const ObjectId& pack : marks.sweeping) out.raw(pack.bytes);
  write_generations(out, marks.forgotten);
  return out.take();
}

Result<Marks> decode_marks(ByteView bytes) {
  WireReader in(bytes);
  if (!bytes.empty() && bytes[0] > kMarksVersion)
    return Error(ErrorCode::unsupported, "the marks were made by a newer kin");
  if (in.u8() != kMarksVersion) in.fail();
  Marks marks;
  marks.generation = in.varint_up_to(kMostGenerations);
  marks.last_sweep = in.varint_up_to(kMostGenerations);
  marks.packs = read_generations(in);
  for (std::size_t left = in.count(32); left > 0 && !in.failed(); --left) {
    const ObjectId id{in.array<32>()};
    if (!marks.sweeping.empty() && !(*marks.sweeping.rbegin() < id)) in.fail();
    marks.sweeping.insert(marks.sweeping.end(), id);
  }
  marks.forgotten = read_generations(in);
  KIN_TRY(in.finish("marks"));
  return marks;
}

Result<std::set<std::string>> list_marks(Backend& backend) {
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, backend.list(FileKind::mark));
  std::set<std::string> out;
  for (const FileInfo& file : files) out.insert(file.name);
  return out;
}

Result<Marks> read_mark_file(Backend& backend, const Sealer& sealer, const std::string& name) {
  const FileName file_name{FileKind::mark, name};
  KIN_TRY_ASSIGN(const Bytes file, get_named(backend, file_name));
  auto plain = sealer.open_file(kMarksMagic, file);
  if (!plain) return std::move(plain).error().context(file_name.text());
  auto marks = decode_marks(*plain);
  if (!marks) return std::move(marks).error().context(file_name.text());
  return marks;
}

Result<StoredMarks> read_marks(Backend& backend, const Sealer& sealer,
                               const std::function<void(const Error&)>& on_damage) {
  StoredMarks out;
  KIN_TRY_ASSIGN(out.names, list_marks(backend));
  std::set<ObjectId> sweeping;
  for (const std::string& name : out.names) {
    auto one = read_mark_file(backend, sealer, name);
    if (!one && one.error().code() == ErrorCode::not_found) continue;  // replaced by one that lists more
    if (!one && one.error().code() != ErrorCode::corrupt) return std::move(one).error();
    if (!one) {
      on_damage(one.error());
      continue;
    }
    sweeping.insert(one->sweeping.begin(), one->sweeping.end());
    const std::uint64_t last_sweep = std::max(one->last_sweep, out.marks.last_sweep);
    if (one->generation >= out.marks.generation) out.marks = *std::move(one);
    out.marks.last_sweep = last_sweep;
  }
  out.marks.sweeping = std::move(sweeping);
  return out;
}

Result<std::string> put_marks(Backend& backend, const Sealer& sealer, const Marks& marks) {
  const Bytes file = sealer.seal_file(kMarksMagic, encode_marks(marks));
  const std::string name = hex(hash(file));
  KIN_TRY(backend.put({FileKind::mark, name}, file));
  KIN_TRY(backend.sync());
  return name;
}

}  // namespace kin::store
