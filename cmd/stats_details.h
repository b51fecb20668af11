// What kin stats --details counts beyond the overview: how the objects of snapshots are stored.
#pragma once

#include "cmd/context.h"
#include "lib/base/hash.h"
#include "store/object_storage.h"

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace kin::cmd {

// Half of a hash is enough to tell objects apart, and there may be a hundred million.
struct ShortId {
  std::array<std::uint8_t, 16> bytes;
  explicit ShortId(const Digest& digest) { std::memcpy(bytes.data(), digest.data(), bytes.size()); }
  bool operator==(const ShortId&) const = default;
};
struct ShortIdHash {
  std::size_t operator()(const ShortId& id) const {
    std::size_t out;
    std::memcpy(&out, id.bytes.data(), sizeof out);
    return out;
  }
};

// A set of things that have sizes.
class Distinct {
 public:
  bool add(const Digest& id, std::uint64_t size) {
    if (!seen_.insert(ShortId(id)).second) return false;
    bytes_ += size;
    return true;
  }
  bool contains(const ShortId& id) const { return seen_.contains(id); }
  std::uint64_t count() const { return seen_.size(); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::unordered_set<ShortId, ShortIdHash> seen_;
  std::uint64_t bytes_ = 0;
};

// The end of a name that tells what is in the file: ".txt"; "(no suffix)".
std::string suffix_of(std::string_view name);
inline constexpr const char* kMetadataType = "(trees and lists)";
inline constexpr const char* kRecipeType = "(recipes of containers)";

// Looks up each object that the snapshots have, and its bases: some microseconds and, for deltas and bases,
// some 60 bytes each.
class StorageDetails {
 public:
  explicit StorageDetails(store::Repository& repository) : repository_(repository) {}

  // Once for each distinct object.
  Result<void> add(const ObjectId& id, const std::string& type);
  void print(Context& context, const Distinct& reached) const;
  Json json(const Distinct& reached) const;
  bool damaged() const { return missing_ > 0; }

 private:
  struct Tally {
    std::uint64_t objects = 0, bytes = 0, stored = 0;
    void add(std::uint64_t size, std::uint64_t share) {
      ++objects;
      bytes += size;
      stored += share;
    }
  };
  struct NamedTally {
    std::string name;
    Tally tally;
  };

  // Nothing if the chain is broken.
  Result<std::optional<unsigned>> depth_of(const ObjectId& id, const store::Location& location);
  std::vector<NamedTally> largest_types() const;
  Tally kept_as_bases(const Distinct& reached) const;

  store::Repository& repository_;
  std::unordered_map<std::string, Tally> types_;
  std::map<unsigned, Tally> depths_;
  std::unordered_map<ShortId, std::uint8_t, ShortIdHash> known_depths_;  // of deltas
  std::unordered_map<ShortId, std::pair<std::uint64_t, std::uint64_t>, ShortIdHash>
      bases_;  // all that were met, with size and share
  std::uint64_t missing_ = 0;
};

void print_encodings(Context& context, const store::EncodingTable& table);
Json encodings_json(const store::EncodingTable& table);

}  // namespace kin::cmd
