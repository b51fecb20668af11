// ContainerCounts: what became of the containers that a backup met, at all levels: how many were opened, and
// how many stayed closed and why.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace kin {

struct ContainerCounts {
  std::map<std::string, std::uint64_t> opened;                          // by type
  std::map<std::pair<std::string, std::string>, std::uint64_t> closed;  // by type and reason

  bool empty() const { return opened.empty() && closed.empty(); }

  void add_closed(const std::string& type, const std::string& reason, std::uint64_t count = 1) {
    // Reasons are few. Should a format ever put a name or a number into one, this stays small.
    constexpr std::size_t kMostReasons = 100;
    const std::pair key(type, reason);
    closed[closed.size() < kMostReasons || closed.contains(key) ? key
                                                                : std::pair(type, std::string("others"))] +=
        count;
  }

  void add(const ContainerCounts& more) {
    for (const auto& [type, count] : more.opened) opened[type] += count;
    for (const auto& [key, count] : more.closed) add_closed(key.first, key.second, count);
  }
};

}  // namespace kin
