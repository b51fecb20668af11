#include "cmd/completion.h"

#include "cmd/context.h"
#include "lib/base/check.h"

#include <ostream>

namespace kin::cmd {
namespace {

CLI::App* described_app = nullptr;

// What the three scripts need of an option and of a command.
struct OptionInfo {
  std::vector<std::string> short_names, long_names;  // without dashes
  std::string description;
  std::vector<std::string> choices;
  bool takes_value = false, repeatable = false;

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const std::string& name : short_names) out.push_back("-" + name);
    for (const std::string& name : long_names) out.push_back("--" + name);
    return out;
  }
};
struct CommandInfo {
  std::string name, description;
  std::vector<std::string> path;  // of names, from below kin
  std::vector<OptionInfo> options;
  std::vector<std::string> choices;  // of its arguments
  std::vector<CommandInfo> commands;
};

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string out;
  for (const std::string& word : words) out.append(out.empty() ? "" : separator).append(word);
  return out;
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

// bash and zsh; fish differs.
std::string quoted(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

// CLI::IsMember tells its members by the type's name only: "TEXT:{tar,zip}".
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

CommandInfo describe(const CLI::App& app, const std::vector<std::string>& path) {
  CommandInfo out{app.get_name(), app.get_description(), path, {}, {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    // Every command has its own --help; the global one stands for them all.
    if (!path.empty() && option == app.get_help_ptr()) continue;
    if (option->get_positional()) {
      out.choices = choices_of(*option);
    } else {
      out.options.push_back({option->get_snames(), option->get_lnames(), option->get_description(),
                             choices_of(*option), option->get_expected_min() != 0,
                             option->get_items_expected_max() > 1});
    }
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    std::vector<std::string> below = path;
    below.push_back(command->get_name());
    out.commands.push_back(describe(*command, below));
  }
  return out;
}

std::vector<std::string> command_names(const CommandInfo& command) {
  std::vector<std::string> out;
  for (const CommandInfo& below : command.commands) out.push_back(below.name);
  return out;
}

// ---- bash: a table of words by command, and a function that looks them up. It offers no file names itself;
// bash does so where there is nothing else.

void bash_table(const CommandInfo& command, const CommandInfo& root, std::string& out) {
  std::vector<std::string> options, values;
  std::string choices;
  const auto add = [&](const OptionInfo& option) {
    for (const std::string& name : option.names()) {
      options.push_back(name);
      if (option.takes_value) values.push_back(name);
      if (!option.choices.empty())
        choices += fmt::format(" [{}]={}", name, quoted(joined(option.choices, " ")));
    }
  };
  for (const OptionInfo& option : command.options) add(option);
  if (&command != &root) {
    for (const OptionInfo& option : root.options) add(option);
  }
  if (!command.choices.empty())
    choices += fmt::format(" [argument]={}", quoted(joined(command.choices, " ")));
  out += fmt::format("    {}) commands={} options={} values={} choices=({}) ;;\n",
                     quoted(joined(command.path, " ")), quoted(joined(command_names(command), " ")),
                     quoted(joined(options, " ")), quoted(joined(values, " ")),
                     choices.empty() ? "" : choices.substr(1));
  for (const CommandInfo& below : command.commands) bash_table(below, root, out);
}

std::string bash_script(const CommandInfo& root) {
  std::string table;
  bash_table(root, root, table);
  return R"(# Completion of kin for bash. For all shells to come: kin completion bash > ~/.local/share/bash-completion/completions/kin
_kin_words() {
  case $1 in
)" + table +
         R"(  esac
}
_kin() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command='' word i
  local commands options values
  local -A choices
  _kin_words ''
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ " $values " == *" $word "* ]]; then
      [[ ${COMP_WORDS[i + 1]} == = ]] && ((i++))  # bash makes three words of --option=value
      ((i++))
    elif [[ $word != -* && " $commands " == *" $word "* ]]; then
      command=${command:+$command }$word
      _kin_words "$command"
    fi
  done
  [[ $previous == = ]] && previous=${COMP_WORDS[COMP_CWORD - 2]}
  [[ $current == = ]] && current=''
  local offered=$commands
  if [[ " $values " == *" $previous "* ]]; then
    offered=${choices[$previous]-}
  elif [[ $current == -* ]]; then
    offered=$options
  elif [[ -z $commands ]]; then
    offered=${choices[argument]-}
  fi
  COMPREPLY=($(compgen -W "$offered" -- "$current"))
}
complete -o bashdefault -o default -F _kin kin
)";
}

// ---- zsh: a function for each command, by _arguments.

std::string zsh_option(const OptionInfo& option) {
  std::string description = option.description;
  for (const char* special : {"\\", "[", "]", ":"})
    description = replaced(description, special, std::string("\\") + special);
  std::vector<std::string> names;
  for (const std::string& name : option.short_names)
    names.push_back("-" + name + (option.takes_value ? "+" : ""));
  for (const std::string& name : option.long_names)
    names.push_back("--" + name + (option.takes_value ? "=" : ""));
  const std::string rest = "[" + description + "]" +
                           (!option.takes_value      ? ""
                            : option.choices.empty() ? ":value:_files"
                                                     : ":value:(" + joined(option.choices, " ") + ")");
  std::string out;
  // A counted flag (-vv) looks like any other; offering it once more does no harm.
  const std::string before =
      option.repeatable || !option.takes_value ? "*" : "(" + joined(option.names(), " ") + ")";
  for (const std::string& name : names) out += " " + quoted(before + name + rest);
  return out;
}

std::string zsh_name(const CommandInfo& command) {
  return "_kin" + (command.path.empty() ? "" : "_" + replaced(joined(command.path, "_"), "-", "_"));
}

void zsh_function(const CommandInfo& command, std::string& out) {
  std::string specifications;
  for (const OptionInfo& option : command.options) specifications += zsh_option(option);
  out += zsh_name(command) + "() {\n";
  if (command.path.empty()) {
    out += "  local -a global=(" + specifications + " )\n";
    specifications.clear();
  }
  if (command.commands.empty()) {
    const std::string arguments =
        command.choices.empty() ? "*:file:_files" : "1:argument:(" + joined(command.choices, " ") + ")";
    out += fmt::format("  _arguments -s \"$global[@]\"{} '{}'\n}}\n", specifications, arguments);
    return;
  }
  std::string described, calls;
  for (const CommandInfo& below : command.commands) {
    described += " " + quoted(below.name + ":" + replaced(below.description, ":", "\\:"));
    calls += fmt::format("        {}) {} ;;\n", below.name, zsh_name(below));
  }
  out += "  local context state state_descr line\n  typeset -A opt_args\n  local -a commands=(" + described +
         " )\n" + "  _arguments -s -C -A '-*' \"$global[@]\"" + specifications +
         " '1:command:->command' '*::argument:->argument'\n" + "  case $state in\n" +
         "    command) _describe -t commands command commands ;;\n    argument)\n      case $line[1] in\n" +
         calls + "      esac ;;\n  esac\n}\n";
  for (const CommandInfo& below : command.commands) zsh_function(below, out);
}

std::string zsh_script(const CommandInfo& root) {
  std::string out =
      "#compdef kin\n# Completion of kin for zsh. For all shells to come: save it as _kin in a directory of "
      "$fpath.\n";
  zsh_function(root, out);
  // Loaded by name from $fpath, the file is the function's body; sourced, it has to register it.
  return out + "if [[ $funcstack[1] == _kin ]]; then _kin \"$@\"; else compdef _kin kin; fi\n";
}

// ---- fish: a line for each thing that can be completed, with the condition under which it can.

std::string fish_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

void fish_lines(const CommandInfo& command, std::string& out) {
  std::vector<std::string> conditions;
  for (const std::string& name : command.path) conditions.push_back("__fish_seen_subcommand_from " + name);
  const auto complete = [&](const std::string& what) {
    out += "complete -c kin" +
           (conditions.empty() ? "" : " -n " + fish_quoted(joined(conditions, "; and "))) + what + "\n";
  };
  for (const OptionInfo& option : command.options) {
    std::string line;
    for (const std::string& name : option.short_names) line += " -s " + name;
    for (const std::string& name : option.long_names) line += " -l " + name;
    if (option.takes_value)
      line += option.choices.empty() ? " -r -F" : " -x -a " + fish_quoted(joined(option.choices, " "));
    complete(line + " -d " + fish_quoted(option.description));
  }
  if (!command.choices.empty()) complete(" -f -a " + fish_quoted(joined(command.choices, " ")));
  if (command.commands.empty()) return;
  // Not __fish_use_subcommand: it would take the value of -r for the command.
  conditions.push_back("not __fish_seen_subcommand_from " + joined(command_names(command), " "));
  complete(" -f");
  for (const CommandInfo& below : command.commands)
    complete(" -a " + below.name + " -d " + fish_quoted(below.description));
  for (const CommandInfo& below : command.commands) fish_lines(below, out);
}

std::string fish_script(const CommandInfo& root) {
  std::string out =
      "# Completion of kin for fish. For all shells to come: kin completion fish > "
      "~/.config/fish/completions/kin.fish\n";
  fish_lines(root, out);
  return out;
}

Result<ExitCode> run_completion(Context& context, const std::string& shell) {
  KIN_CHECK(described_app != nullptr);
  const CommandInfo root = describe(*described_app, {});
  context.raw_out() << (shell == "bash"  ? bash_script(root)
                        : shell == "zsh" ? zsh_script(root)
                                         : fish_script(root));
  return ExitCode::ok;
}

Action define_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [shell](Context& context) { return run_completion(context, *shell); };
}

}  // namespace

void set_completion_app(CLI::App& app) { described_app = &app; }

extern const Command kCompletion{"completion", "print a script that completes kin's commands in a shell",
                                 define_completion};

}  // namespace kin::cmd
