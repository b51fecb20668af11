#include "store/parity.h"

#include "cmd/parity_report.h"
#include "lib/base/text.h"

#include <fmt/core.h>

#include <charconv>

namespace kin::cmd {
namespace {

struct ParityCommandOptions {
  std::string percent;
};

Result<ExitCode> show_parity(Context& context, const ParityCommandOptions&) {
  KIN_TRY_ASSIGN(const auto repository, open_repository(context));
  KIN_TRY_ASSIGN(
      const store::ParityStatus status,
      store::parity_status(
          *repository, false, [&](const Error& error) { context.warn(error.message()); }, context.stop()));
  const unsigned percent = repository->config().parity_percent;
  context.print(percent == 0 ? std::string("new packs get no parity (kin parity add 5% turns it on)")
                             : fmt::format("new packs get {} % of parity", percent));
  context.print(fmt::format("{} with {} of parity in {}", counted(status.packs, "pack"),
                            human_bytes(status.file_bytes), counted(status.files, "file")));
  if (status.bare_packs > 0)
    context.print(
        fmt::format("{} ({}) without", counted(status.bare_packs, "pack"), human_bytes(status.bare_bytes)));
  context.json("parity", {{"percent", percent},
                          {"files", status.files},
                          {"file_bytes", status.file_bytes},
                          {"damaged_files", status.damaged_files},
                          {"packs", status.packs},
                          {"pack_bytes", status.pack_bytes},
                          {"bare_packs", status.bare_packs},
                          {"bare_bytes", status.bare_bytes}});
  return status.damaged_files > 0 ? ExitCode::corrupt : ExitCode::ok;
}

// Two who make it at once would each make all of it.
Result<ExitCode> change_parity(Context& context, std::optional<unsigned> percent) {
  KIN_TRY_ASSIGN(const LockedRepository alone, open_repository_alone(context));
  const auto& repository = alone.repository;
  const unsigned before = repository->config().parity_percent;
  store::ParityOptions options;
  options.percent = percent.value_or(before);
  if (!percent && before == 0)
    return Error(ErrorCode::invalid_argument, "how much parity? kin parity add 5% is a good start");
  options.check_all = true;
  options.most_needed_first = true;
  if (options.percent != before) KIN_TRY(repository->set_parity_percent(options.percent));
  KIN_TRY_ASSIGN(const store::ParityUpdate update, make_parity(context, *repository, options));
  context.json("summary", {{"percent", options.percent},
                           {"packs", update.packs},
                           {"pack_bytes", update.pack_bytes},
                           {"files", update.files},
                           {"file_bytes", update.file_bytes},
                           {"removed", update.removed},
                           {"unprotected", update.unprotected.size()}});
  if (update.packs == 0 && options.percent > 0) context.print("all packs that can be read have it already");
  if (options.percent == 0)
    context.print(fmt::format("removed {}; new packs get none", counted(update.removed, "parity file")));
  return update.unprotected.empty() ? ExitCode::ok : ExitCode::incomplete;
}

Result<ExitCode> add_parity(Context& context, const ParityCommandOptions& options) {
  if (options.percent.empty()) return change_parity(context, std::nullopt);
  KIN_TRY_ASSIGN(const unsigned percent, parse_parity_percent(options.percent));
  return change_parity(context, percent);
}

Result<ExitCode> remove_parity(Context& context, const ParityCommandOptions&) {
  return change_parity(context, 0);
}

Action define_parity(CLI::App& app) {
  using Run = Result<ExitCode> (*)(Context&, const ParityCommandOptions&);
  auto options = std::make_shared<ParityCommandOptions>();
  auto chosen = std::make_shared<Run>(show_parity);
  const auto sub = [&](const char* name, const char* help, Run run) {
    CLI::App* const command = app.add_subcommand(name, help)->fallthrough();
    command->callback([chosen, run] { *chosen = run; });
    return command;
  };
  sub("add", "make parity for all packs that have none, and for new ones from now on", add_parity)
      ->add_option("PERCENT", options->percent, "how much, of the packs' bytes: 5%");
  sub("remove", "remove all parity, and make none any more", remove_parity);
  return [options, chosen](Context& context) { return (*chosen)(context, *options); };
}

}  // namespace

Result<unsigned> parse_parity_percent(const std::string& text) {
  unsigned percent = 0;
  const char* const end = text.data() + text.size() - (text.ends_with('%') ? 1 : 0);
  const auto [stopped, error] = std::from_chars(text.data(), end, percent);
  if (error != std::errc() || stopped != end || percent < 1 || percent > store::kMostParityPercent)
    return Error(ErrorCode::invalid_argument, fmt::format("'{}' is no percentage from 1% to {}%",
                                                          printable(text), store::kMostParityPercent));
  return percent;
}

Result<store::ParityUpdate> make_parity(Context& context, store::Repository& repository,
                                        const store::ParityOptions& options) {
  const store::ParityObserver observer{
      [&](const std::string& text) { context.warn(text); },
      [&](std::string_view doing, std::uint64_t done, std::uint64_t all) {
        context.progress(fmt::format("{}: {} of {}", doing, grouped(done), grouped(all)));
      }};
  auto update = store::update_parity(repository, options, observer, context.stop());
  context.progress("");
  if (!update) return update;
  for (const ObjectId& pack : update->unprotected)
    context.warn(fmt::format("pack {} is damaged and gets no parity (kin repair packs saves what is sound)",
                             pack.short_hex()));
  if (update->packs > 0)
    context.print(fmt::format("parity for {} ({}): {}", counted(update->packs, "pack"),
                              human_bytes(update->pack_bytes), human_bytes(update->file_bytes)));
  return update;
}

bool make_parity_for_new_packs(Context& context, store::Repository& repository) {
  store::ParityOptions options;
  options.percent = repository.config().parity_percent;
  if (options.percent == 0) return true;
  const auto made = make_parity(context, repository, options);
  if (!made) context.warn("there is no parity for what is new: " + made.error().message());
  return made && made->unprotected.empty();
}

extern const Command kParity{"parity", "tell how packs can be healed, and provide for it", define_parity};

}  // namespace kin::cmd
