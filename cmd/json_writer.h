// JsonWriter: one JSON document, written as it goes: for those that may be larger than memory. One thread at
// a time.
#pragma once

#include <nlohmann/json.hpp>

#include <ostream>
#include <vector>

namespace kin::cmd {

class JsonWriter {
 public:
  // Begins with an object. The stream must outlive it.
  explicit JsonWriter(std::ostream& out) : out_(out) { begin('{', '}'); }

  // In an object.
  void fields(const nlohmann::json& fields) {
    for (const auto& field : fields.items()) {
      key(field.key());
      out_ << text(field.value());
    }
  }
  void begin_array(const char* name) {
    key(name);
    begin('[', ']');
  }
  // In an array.
  void value(const nlohmann::json& value) {
    separate();
    out_ << text(value);
  }
  void begin_object() {
    separate();
    begin('{', '}');
  }
  // Of what was begun last; with the first object, the line ends.
  void end() {
    out_ << open_.back().closing;
    open_.pop_back();
    if (open_.empty()) out_ << '\n';
  }

 private:
  struct Open {
    char closing;
    bool has_some = false;
  };

  // Text must be UTF-8, as everywhere in JSON.
  static std::string text(const nlohmann::json& value) {
    return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  void begin(char opening, char closing) {
    out_ << opening;
    open_.push_back({closing});
  }
  void separate() {
    if (open_.back().has_some) out_ << ',';
    open_.back().has_some = true;
  }
  void key(const std::string& name) {
    separate();
    out_ << text(name) << ':';
  }

  std::ostream& out_;
  std::vector<Open> open_;
};

}  // namespace kin::cmd
