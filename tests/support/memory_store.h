// A SyncStore in memory, for tests of the engine: messages in folders, and files by path.
#pragma once

#include "lib/base/file.h"
#include "lib/sync/sync_store.h"

#include <functional>
#include <map>
#include <set>
#include <string>

namespace kin::testing {

class MemoryStore : public sync::SyncStore {
 public:
  struct Stored {
    sync::Item item;
    Bytes content;
    std::uint64_t number = 0;  // its fingerprint
  };
  using Folder = std::map<std::string, Stored>;

  std::map<std::string, Folder> contents{{"", {}}};
  std::uint64_t applied = 0;
  std::uint64_t fail_after = UINT64_MAX;  // so many changes: then they are answered with busy

  // As a mail program or a person would.
  void put_message(const std::string& folder, const std::string& local, const std::string& content,
                   std::uint8_t flags = 0, std::vector<std::string> words = {}) {
    Stored stored;
    stored.item.flags = flags;
    stored.item.words = std::move(words);
    stored.item.name = local;
    put(folder, local, std::move(stored), content);
  }
  void put_file(const std::string& folder, const std::string& name, const std::string& content,
                std::int64_t time) {
    Stored stored;
    stored.item.type = sync::ItemType::file;
    stored.item.name = name;
    stored.item.mode = 0644;
    stored.item.time = {time, 0};
    put(folder, name, std::move(stored), content);
  }
  // What is there, whatever it is called: folder, content and flags of each; of files also the names.
  std::multiset<std::string> view() const {
    std::multiset<std::string> out;
    for (const auto& [folder, entries] : contents)
      for (const auto& [local, stored] : entries) {
        std::string text = std::string(as_text(stored.content)) + "|" + std::to_string(stored.item.flags);
        for (const std::string& word : stored.item.words) text += "," + word;
        if (stored.item.type == sync::ItemType::file) text = local + "=" + text;
        out.insert(folder + ": " + text);
      }
    return out;
  }

  const char* kind() const override { return "memory"; }
  Result<std::vector<std::string>> folders(const OnSkipped&) override {
    std::vector<std::string> out;
    for (const auto& [folder, entries] : contents) out.push_back(folder);
    return out;
  }
  Result<void> scan(const std::string& folder, const OnEntry& on_entry, const OnSkipped&) override {
    if (!contents.contains(folder)) return Error(ErrorCode::not_found, "no such folder");
    for (const auto& [local, stored] : contents[folder]) KIN_TRY(on_entry(entry_of(local, stored)));
    return {};
  }
  Result<std::unique_ptr<ByteSource>> read(const std::string& folder, const sync::Entry& entry) override {
    Stored* const stored = find(folder, entry.local);
    if (stored == nullptr) return Error(ErrorCode::not_found, "it is gone");
    return std::unique_ptr<ByteSource>(std::make_unique<MemorySource>(stored->content));
  }
  std::function<void()> on_apply;  // before and after each
  std::vector<Result<sync::Entry>> apply(std::vector<sync::StoreChange> changes) override {
    if (on_apply) on_apply();
    std::vector<Result<sync::Entry>> out;
    for (sync::StoreChange& change : changes) {
      if (applied >= fail_after)
        out.push_back(Error(ErrorCode::busy, "told to fail"));
      else
        out.push_back(apply(change));
      ++applied;
      if (on_apply) on_apply();
    }
    return out;
  }
  std::string path_of(const std::string& folder, const sync::Entry& entry) const override {
    return folder + "/" + entry.local;
  }

 private:
  sync::Entry entry_of(const std::string& local, const Stored& stored) const {
    sync::Entry entry;
    entry.local = local;
    entry.fingerprint.inode = stored.number;
    entry.fingerprint.size = stored.content.size();
    entry.item = stored.item;
    entry.item.object = {};
    entry.item.copy = 0;
    return entry;
  }

  Stored* find(const std::string& folder, const std::string& local) {
    const auto in = contents.find(folder);
    if (in == contents.end()) return nullptr;
    const auto at = in->second.find(local);
    return at == in->second.end() ? nullptr : &at->second;
  }

  void put(const std::string& folder, const std::string& local, Stored stored, const std::string& content) {
    stored.item.folder = folder;
    stored.content.assign(content.begin(), content.end());
    stored.number = ++numbers_;
    contents[folder][local] = std::move(stored);
  }

  static Result<Bytes> content_of(const sync::StoreChange& change) {
    if (change.content_path.empty()) return change.content;
    auto content = read_file(change.content_path, 1 << 30);
    if (content && change.may_take) ::unlink(change.content_path.c_str());
    return content;
  }

  Result<sync::Entry> apply(sync::StoreChange& change) {
    using Kind = sync::StoreChange::Kind;
    const bool is_folder = change.item.type == sync::ItemType::directory;
    if (change.kind == Kind::add && is_folder) {
      contents.try_emplace(change.item.name);
      return entry_of("", {change.item, {}, 0});
    }
    if (is_folder) {
      if (change.kind == Kind::remove && contents.contains(change.item.name) &&
          contents[change.item.name].empty())
        contents.erase(change.item.name);
      return entry_of("", {change.item, {}, 0});
    }
    if (change.kind == Kind::add) {
      KIN_TRY_ASSIGN(Bytes content, content_of(change));
      Stored stored{change.item, std::move(content), ++numbers_};
      std::string local =
          change.item.type == sync::ItemType::file ? change.item.name : "n" + std::to_string(numbers_);
      contents[change.item.folder][local] = stored;
      return entry_of(local, stored);
    }
    Stored* const stored = find(change.folder, change.entry.local);
    if (stored == nullptr || stored->number != change.entry.fingerprint.inode)
      return Error(ErrorCode::busy, "it is not as it was");
    if (change.kind == Kind::remove) {
      const sync::Entry entry = entry_of(change.entry.local, *stored);
      contents[change.folder].erase(change.entry.local);
      return entry;
    }
    stored->item = change.item;
    if (change.has_content) {
      KIN_TRY_ASSIGN(stored->content, content_of(change));
      stored->number = ++numbers_;
    }
    if (change.kind == Kind::update) return entry_of(change.entry.local, *stored);
    Stored moved = *stored;
    contents[change.folder].erase(change.entry.local);
    const std::string local = "n" + std::to_string(++numbers_);
    moved.number = numbers_;
    contents[change.item.folder][local] = moved;
    return entry_of(local, moved);
  }

  std::uint64_t numbers_ = 0;
};

}  // namespace kin::testing
