// What an exchange did, by folder: for people as a table, for programs as JSON.
#pragma once

#include "cmd/context.h"
#include "lib/sync/record.h"

#include <map>
#include <string>

namespace kin::cmd {

class SyncReport {
 public:
  struct Counts {
    std::uint64_t added = 0, moved = 0, changed = 0, deleted = 0;
    bool any() const { return added + moved + changed + deleted > 0; }
  };

  explicit SyncReport(bool is_mail) : is_mail_(is_mail) {}

  void received(const sync::Record& record) { count(folders_[folder_of(record)].here, record); }
  void sent(const sync::Record& record) { count(folders_[folder_of(record)].there, record); }
  void conflict(const sync::Item& item) { ++folders_[item.folder].conflicts; }
  std::uint64_t content_bytes() const { return content_bytes_; }

  void print(Context& context) const;
  Json json() const;

 private:
  struct Folder {
    Counts here, there;  // where the change was, or is to be, made
    std::uint64_t conflicts = 0;
  };

  static std::string folder_of(const sync::Record& record);
  void count(Counts& counts, const sync::Record& record);

  const bool is_mail_;
  std::map<std::string, Folder> folders_;
  std::uint64_t content_bytes_ = 0;
};

}  // namespace kin::cmd
