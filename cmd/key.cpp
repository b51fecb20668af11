#include "cmd/context.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "store/key_file.h"

namespace kin::cmd {
namespace {

struct KeyOptions {
  std::string id, new_password_file;
};

Result<std::string> ask_new_password(Context& context, const KeyOptions& options) {
  if (!options.new_password_file.empty()) {
    KIN_TRY_ASSIGN(const Bytes bytes, read_file(options.new_password_file, 64 << 10));
    return first_line(as_text(bytes));
  }
  if (const char* const password = std::getenv("KIN_NEW_PASSWORD")) return std::string(password);
  // The current password's sources must not answer for the new one.
  Context asking(context.raw_out(), context.raw_out(), false, context.stop());
  if (std::getenv("KIN_PASSWORD") != nullptr)
    return Error(
        ErrorCode::invalid_argument,
        "KIN_PASSWORD is the current password; give the new one by --new-password-file or KIN_NEW_PASSWORD");
  return read_password(asking, "new password", true);
}

Result<std::string> new_password(Context& context, const KeyOptions& options) {
  KIN_TRY_ASSIGN(std::string password, ask_new_password(context, options));
  if (password.empty()) return Error(ErrorCode::invalid_argument, "an empty password protects nothing");
  return password;
}

Result<std::unique_ptr<store::Repository>> open_encrypted(Context& context) {
  KIN_TRY_ASSIGN(auto repository, open_repository(context));
  if (repository->config().encryption == store::Encryption::none)
    return Error(ErrorCode::invalid_argument, "the repository is not encrypted and has no keys");
  return repository;
}

Result<ExitCode> list(Context& context, const KeyOptions&) {
  KIN_TRY_ASSIGN(const auto repository, open_encrypted(context));
  bool damaged = false;
  KIN_TRY_ASSIGN(const std::vector<store::KeyInfo> keys,
                 store::list_keys(repository->backend(), [&](const Error& error) {
                   context.warn(error.message());
                   damaged = true;
                 }));
  context.print_always(fmt::format("  {:<8}  {:<12}  {:<12}  {}", "ID", "User", "Host", "Created"));
  for (const store::KeyInfo& key : keys) {
    if (key.newer) {
      context.print_always(fmt::format("  {:<8}  made by a newer kin", key.name.substr(0, 8)));
      context.json("key", {{"current", false}, {"id", key.name}, {"newer", true}});
      continue;
    }
    const bool current = key.name == repository->key_name();
    context.print_always(fmt::format("{} {:<8}  {:<12}  {:<12}  {}", current ? '*' : ' ',
                                     key.name.substr(0, 8), printable(key.user), printable(key.host),
                                     local_time(key.created)));
    context.json("key", {{"current", current},
                         {"id", key.name},
                         {"userName", key.user},
                         {"hostName", key.host},
                         {"created", iso_time(key.created)}});
  }
  return damaged ? ExitCode::corrupt : ExitCode::ok;
}

Result<ExitCode> add(Context& context, const KeyOptions& options) {
  KIN_TRY_ASSIGN(const auto repository, open_encrypted(context));
  KIN_TRY(repository->require_writable());  // before anybody types a password for nothing
  KIN_TRY_ASSIGN(const std::string password, new_password(context, options));
  KIN_TRY_ASSIGN(const std::string name, repository->add_key(password));
  context.print("added key " + name.substr(0, 8));
  context.json("key_added", {{"id", name}});
  return ExitCode::ok;
}

Result<ExitCode> remove(Context& context, const KeyOptions& options) {
  KIN_TRY_ASSIGN(const auto repository, open_encrypted(context));
  // By name alone, so that a damaged key can be removed, too.
  KIN_TRY_ASSIGN(const std::vector<store::FileInfo> keys, repository->backend().list(store::FileKind::key));
  std::vector<std::string> matches;
  for (const store::FileInfo& key : keys)
    if (key.name.starts_with(options.id)) matches.push_back(key.name);
  if (matches.empty()) return Error(ErrorCode::not_found, "there is no key " + printable(options.id));
  if (matches.size() > 1)
    return Error(ErrorCode::invalid_argument,
                 fmt::format("key {} is not clear: {} ids start so", printable(options.id), matches.size()));
  // So at least this one stays, and its password is known to be known.
  if (matches.front() == repository->key_name())
    return Error(
        ErrorCode::invalid_argument,
        "this is the key that you are using now; open the repository with another password to remove it");
  KIN_TRY(repository->remove_key(matches.front()));
  context.print("removed key " + matches.front().substr(0, 8));
  context.json("key_removed", {{"id", matches.front()}});
  return ExitCode::ok;
}

Result<ExitCode> change(Context& context, const KeyOptions& options) {
  KIN_TRY_ASSIGN(const auto repository, open_encrypted(context));
  KIN_TRY(repository->require_removable());  // likewise
  KIN_TRY_ASSIGN(const std::string password, new_password(context, options));
  KIN_TRY_ASSIGN(const std::string name, repository->replace_key(password));
  context.print(fmt::format("key {} replaces {}", name.substr(0, 8), repository->key_name().substr(0, 8)));
  context.json("key_changed", {{"id", name}, {"old_id", repository->key_name()}});
  return ExitCode::ok;
}

Action define_key(CLI::App& app) {
  auto options = std::make_shared<KeyOptions>();
  auto chosen = std::make_shared<Result<ExitCode> (*)(Context&, const KeyOptions&)>(nullptr);
  app.require_subcommand(1);
  const auto sub = [&](const char* name, const char* help,
                       Result<ExitCode> (*run)(Context&, const KeyOptions&)) {
    CLI::App* const command = app.add_subcommand(name, help)->fallthrough();
    command->callback([chosen, run] { *chosen = run; });
    return command;
  };
  sub("list", "list the keys (* is the one in use)", list);
  for (CLI::App* const command :
       {sub("add", "add a password", add), sub("passwd", "change the password in use", change)})
    command->add_option("--new-password-file", options->new_password_file,
                        "the file whose first line is the new password");
  sub("remove", "remove a key", remove)
      ->add_option("ID", options->id, "the key's id or its first digits")
      ->required();
  return [options, chosen](Context& context) { return (*chosen)(context, *options); };
}

}  // namespace

extern const Command kKey{"key", "manage the passwords of a repository", define_key};

}  // namespace kin::cmd
