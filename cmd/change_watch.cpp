#include "cmd/change_watch.h"

#include <cstring>
#include <filesystem>
#include <poll.h>
#include <string_view>
#include <sys/inotify.h>
#include <unistd.h>

namespace kin::cmd {

ChangeWatch::ChangeWatch(const std::vector<std::string>& roots)
    : watch_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  if (!watch_) return;
  for (const std::string& root : roots) add(root);
}

void ChangeWatch::wait(unsigned seconds, const std::stop_token& stop) {
  for (unsigned waited = 0; waited < seconds * 10 && !stop.stop_requested(); ++waited) {
    pollfd waiting{fd(), POLLIN, 0};
    if (::poll(&waiting, 1, 100) > 0 && has_changed()) return;
  }
}

bool ChangeWatch::has_changed() {
  if (!read_events()) return false;
  ::poll(nullptr, 0, 300);
  return true;
}

void ChangeWatch::add(const std::string& root) {
  constexpr auto kEvents = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE;
  constexpr auto kReadable = std::filesystem::directory_options::skip_permission_denied;
  // A mailbox is written anew by many programs, under its name.
  ::inotify_add_watch(watch_.get(), root.c_str(), kEvents | IN_DELETE_SELF | IN_MOVE_SELF);
  std::error_code failed;
  for (std::filesystem::recursive_directory_iterator at(root, kReadable, failed), end; !failed && at != end;
       at.increment(failed))
    if (at->is_directory(failed) && !at->is_symlink(failed))
      ::inotify_add_watch(watch_.get(), at->path().c_str(), kEvents);
}

// More than locks that come and go, also by our own looking at a store.
bool ChangeWatch::read_events() {
  alignas(inotify_event) char events[16 << 10];
  const ssize_t got = ::read(watch_.get(), events, sizeof events);
  for (ssize_t at = 0; at < got;) {
    inotify_event event;
    std::memcpy(&event, events + at, sizeof event);
    const std::string_view name(event.len > 0 ? events + at + sizeof event : "");
    if (!name.ends_with(".lock") && name.find(".kin-") == std::string_view::npos) return true;
    at += static_cast<ssize_t>(sizeof event + event.len);
  }
  return false;
}

}  // namespace kin::cmd
