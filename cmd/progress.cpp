#include "cmd/progress.h"

#include "lib/base/text.h"

#include <algorithm>

namespace kin::cmd {

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - started_.load()).count();
}

void Progress::restart() {
  files_ = bytes_ = 0;
  started_ = Clock::now();
}

void Progress::tick(const std::string& current) {
  if (!context_.shows_progress() && !context_.options.json) return;
  {
    MutexLock lock(mutex_);
    const Clock::time_point time = Clock::now();
    if (time < next_) return;
    next_ = time + std::chrono::milliseconds(context_.options.json ? 1000 : 100);
  }
  const double elapsed = seconds();
  const std::uint64_t total = by_files_ ? total_files_ : total_bytes_, done = by_files_ ? files_ : bytes_;
  const double rate = elapsed > 0 ? static_cast<double>(done) / elapsed : 0;
  const double fraction =
      total > 0 ? std::min(1.0, static_cast<double>(done) / static_cast<double>(total)) : 0;
  const double left = rate > 0 && total > done ? static_cast<double>(total - done) / rate : 0;
  if (context_.options.json) {
    Json fields{{"percent_done", fraction},    {"total_files", total_files_.load()},
                {"files_done", files_.load()}, {"total_bytes", total_bytes_.load()},
                {"bytes_done", bytes_.load()}, {"seconds_elapsed", elapsed},
                {"seconds_remaining", left}};
    Json file;
    set_path(file, "current", current);
    fields.update(file);
    context_.json("status", fields);
    return;
  }
  const auto amount = [&](std::uint64_t of) { return by_files_ ? grouped(of) : human_bytes(of); };
  std::string line = total > 0 ? fmt::format("[{}] {:5.1f}%  {} of {}", human_duration(elapsed),
                                             100 * fraction, amount(done), amount(total))
                               : fmt::format("[{}] {}", human_duration(elapsed), amount(done));
  line += by_files_ ? std::string(" files")
                    : fmt::format("  {} files  {}/s", grouped(files_),
                                  human_bytes(static_cast<std::uint64_t>(rate)));
  if (total > 0) line += "  ETA " + human_duration(left);
  context_.progress(line + "  " + printable(current));
}

}  // namespace kin::cmd
