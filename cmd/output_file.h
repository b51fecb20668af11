// The output of commands that make one file: whole or absent.
#pragma once

#include "cmd/context.h"
#include "lib/base/file.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kin::cmd {

// Stdout ("-"), or a file that appears under its name when it is whole. The destructor abandons it.
class OutputFile {
 public:
  using Write = std::function<Result<void>(ByteView bytes)>;
  enum class IfThere { replace, refuse };

  // invalid_argument if it would replace one of `inputs`, something that is not a file, or, where that is to
  // be refused, anything; or if it would be in the repository.
  static Result<std::unique_ptr<OutputFile>> open(Context& context, const std::string& path,
                                                  const std::vector<const Fd*>& inputs,
                                                  IfThere if_there = IfThere::replace);
  // A page beside what a command prints. invalid_argument also if it would replace one of these paths or, if
  // that is a directory, a file in it.
  static Result<std::unique_ptr<OutputFile>> open_page(Context& context, const std::string& path,
                                                       std::vector<std::string> inputs);
  ~OutputFile();

  std::uint64_t bytes() const { return bytes_; }
  bool is_stdout() const { return path_.empty(); }
  Write write() {
    return [this](ByteView bytes) { return write_bytes(bytes); };
  }
  Result<void> commit();
  // All of it, for those that have it as text.
  Result<void> finish(std::string_view text) {
    KIN_TRY(write_bytes(as_bytes(text)));
    return commit();
  }

 private:
  explicit OutputFile(Context& context) : context_(context) {}
  Result<void> write_bytes(ByteView bytes);

  Context& context_;
  std::string path_, temporary_;  // both empty for stdout
  IfThere if_there_ = IfThere::replace;
  Fd fd_;
  std::uint64_t bytes_ = 0;
};

// invalid_argument if two of --json, --csv and --html - are asked for: each wants all of stdout. If it is one
// of the latter, nothing else is told there.
Result<void> choose_form(Context& context, bool csv, const std::string& html);

}  // namespace kin::cmd
