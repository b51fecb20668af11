// Runs a session over two descriptors: reads and writes at once, as fast as they go or as is allowed.
#pragma once

#include "lib/sync/link.h"
#include "lib/sync/session.h"

#include <functional>
#include <stop_token>

namespace kin::sync {

struct ExchangeOptions {
  std::uint64_t limit_bytes_per_second = 0;  // of what is sent; 0: none
  std::function<void()> on_tick;             // a few times a second
  bool was_kept = false;                     // the link, from an exchange before
  double most_silent_seconds = 300;          // of a link that is kept: then it counts as gone
};

struct ExchangeTotals {
  std::uint64_t bytes_in = 0, bytes_out = 0;
};

// io if the link ends before the session does: what came until then is kept. cancelled on a stop, the same. A
// link that was or is to be kept also counts as gone if for minutes nothing goes either way. `totals` is
// right also after an error.
Result<void> run_exchange(Session& session, Link& link, const ExchangeOptions& options,
                          const std::stop_token& stop, ExchangeTotals& totals);

}  // namespace kin::sync
