#include "lib/engine/backup_totals.h"

namespace kin {

void count_totals(const WalkOptions& options, BackupTotals& totals, std::stop_token stop) {
  const auto emit = [&](const WalkEntry& entry) {
    if (entry.kind == WalkEntry::Kind::file) {
      ++totals.files;
      totals.bytes += entry.node.size;
    }
    return !stop.stop_requested();
  };
  WalkOptions plain = options;
  plain.attributes = false;
  const auto walked =
      Walker(plain, nullptr, std::nullopt, emit, [](const std::string&, const Error&) {}).walk();
  totals.complete = walked.has_value() && !stop.stop_requested();
}

}  // namespace kin
