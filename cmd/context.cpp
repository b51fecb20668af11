#include "cmd/context.h"

#include "lib/base/text.h"
#include "lib/base/worker_count.h"

#include <iostream>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace kin::cmd {

unsigned Context::jobs() const { return options.jobs > 0 ? options.jobs : default_worker_count(); }

void Context::clear_progress() {
  if (!progress_shown_) return;
  error_ << "\r\x1b[K" << std::flush;
  progress_shown_ = false;
}

void Context::print(std::string_view line) {
  if (!options.quiet) print_always(line);
}

void Context::print_always(std::string_view line) {
  if (options.json) return;
  MutexLock lock(mutex_);
  clear_progress();
  out_ << line << '\n';
}

void Context::json(const char* message_type, Json fields) {
  if (!options.json) return;
  Json message{{"message_type", message_type}};
  message.update(fields);
  MutexLock lock(mutex_);
  out_ << message.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  // Who watches a long job wants to see it now; a long listing is better written in large pieces.
  if (std::string_view(message_type) == "status") out_ << std::flush;
}

void Context::warn(std::string_view line) {
  MutexLock lock(mutex_);
  clear_progress();
  if (options.json) {
    error_ << Json{{"message_type", "error"}, {"message", line}}.dump(-1, ' ', false,
                                                                      Json::error_handler_t::replace)
           << '\n';
  } else {
    error_ << "kin: " << line << '\n';
  }
}

void Context::progress(const std::string& line) {
  if (!shows_progress()) return;
  MutexLock lock(mutex_);
  clear_progress();
  if (line.empty()) return;
  winsize size{};
  const std::size_t columns =
      ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  // Cut at a character, not inside one.
  std::size_t end = 0, shown = 0;
  for (; end < line.size(); ++end) {
    if ((static_cast<unsigned char>(line[end]) & 0xc0) != 0x80 && ++shown >= columns) break;
  }
  error_ << line.substr(0, end) << std::flush;
  progress_shown_ = true;
}

Result<void> Context::still_heard() const {
  if (out_.good()) return {};
  pollfd out{STDOUT_FILENO, 0, 0};
  if (::poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP)) != 0)
    return Error(ErrorCode::cancelled, "nobody reads stdout");
  return Error(ErrorCode::io, "cannot write to stdout");
}

std::string is_not_empty(const std::string& text) { return text.empty() ? "its value is empty" : ""; }

void set_path(Json& fields, const char* key, std::string_view path) {
  fields[key] = path;
  if (!is_valid_utf8(path)) fields[std::string(key) + "_hex"] = hex(as_bytes(path));
}

}  // namespace kin::cmd
