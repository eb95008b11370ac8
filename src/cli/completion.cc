#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace sluice::cli {
namespace {

// Between single quotes: a quote ends them, is escaped, and begins them again.
std::string quoted(std::string_view text) {
  std::string result = "'";
  for (const char character : text) {
    if (character == '\'') {
      result += "'\\''";
    } else {
      result += character;
    }
  }
  return result + "'";
}

struct ValueKind {
  std::string_view name;
  std::string_view words;  ///< what may stand there; empty: a file
};
constexpr std::array<ValueKind, 6> kKinds{{{.name = "FILE", .words = ""},
                                           {.name = "PATH", .words = ""},
                                           {.name = "BOOL", .words = "true false"},
                                           {.name = "LEVEL", .words = "debug info warn error"},
                                           {.name = "SERVICE", .words = "off envoyproxy"},
                                           {.name = "LISTENER", .words = "http grpc resp admin"}}};

const ValueKind* kind_of(const CompletedOption& option) {
  const auto* found = std::ranges::find(kKinds, std::string_view(option.value), &ValueKind::name);
  return found == kKinds.end() ? nullptr : found;
}

std::string names_of(const std::vector<CompletedOption>& options, bool with_value) {
  std::string names;
  for (const CompletedOption& option : options) {
    if (with_value && option.value.empty()) continue;
    names += (names.empty() ? "" : with_value ? "|" : " ") + option.name;
  }
  return names;
}

// A dot of an option's name is nothing special to the shell; a '=' is a word of its own to bash.
std::string bash(const std::vector<CompletedCommand>& commands) {
  std::string names;
  for (const CompletedCommand& command : commands) names += command.name + " ";
  std::string script = fmt::format(R"(# bash completion for sluice
_sluice() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
  compopt +o default 2>/dev/null
  if [ "$COMP_CWORD" = 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W '{}--help --version' -- "$word")
    return
  fi
  # --name=value is three words.
  if [ "$word" = = ]; then
    word=
  elif [ "$before" = = ]; then
    before=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  case ${{COMP_WORDS[1]}} in
)",
                                   names);
  for (const CompletedCommand& command : commands) {
    fmt::format_to(std::back_inserter(script), "    {})\n      case $before in\n", command.name);
    for (const CompletedOption& option : command.options) {
      const ValueKind* kind = kind_of(option);
      if (kind == nullptr) continue;
      const std::string words = kind->words.empty() ? "-f" : "-W '" + std::string(kind->words) + "'";
      fmt::format_to(std::back_inserter(script),
                     "        {}) mapfile -t COMPREPLY < <(compgen {} -- \"$word\"); return ;;\n", option.name, words);
    }
    if (const std::string taking = names_of(command.options, true); !taking.empty()) {
      fmt::format_to(std::back_inserter(script), "        {}) return ;;\n", taking);
    }
    std::string words;
    for (const std::string& argument : command.words) words += " " + argument;
    fmt::format_to(std::back_inserter(script),
                   "      esac\n      mapfile -t COMPREPLY < <(compgen -W '{}{}' -- \"$word\")\n",
                   names_of(command.options, false), words);
    if (command.takes_files) {
      script += "      [ \"${word:0:1}\" = - ] || mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n";
    }
    script += "      ;;\n";
  }
  script += "  esac\n}\ncomplete -F _sluice sluice\n";
  return script;
}

// What stands between the brackets and after the colons of a specification of _arguments.
std::string zsh_escaped(std::string_view text) {
  std::string result;
  for (const char character : text) {
    if (std::string_view("[]:\\").find(character) != std::string_view::npos) result += '\\';
    result += character;
  }
  return result;
}

std::string zsh(const std::vector<CompletedCommand>& commands) {
  std::string script = "#compdef sluice\n_sluice() {\n  local -a commands\n  commands=(\n";
  for (const CompletedCommand& command : commands) {
    fmt::format_to(std::back_inserter(script), "    {}\n", quoted(command.name + ":" + zsh_escaped(command.help)));
  }
  script +=
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n  local "
      "command=$words[2]\n"
      "  shift words\n  (( CURRENT-- ))\n  case $command in\n";
  for (const CompletedCommand& command : commands) {
    fmt::format_to(std::back_inserter(script), "    {})\n      _arguments", command.name);
    for (const CompletedOption& option : command.options) {
      std::string specification = "*" + option.name;
      if (!option.value.empty()) specification += "=";
      specification += "[" + zsh_escaped(option.help) + "]";
      if (!option.value.empty()) {
        const ValueKind* kind = kind_of(option);
        specification += ":" + zsh_escaped(option.value) + ":";
        if (kind != nullptr) specification += kind->words.empty() ? "_files" : "(" + std::string(kind->words) + ")";
      }
      fmt::format_to(std::back_inserter(script), " \\\n        {}", quoted(specification));
    }
    std::string words;
    for (const std::string& argument : command.words) words += (words.empty() ? "" : " ") + argument;
    if (!words.empty())
      fmt::format_to(std::back_inserter(script), " \\\n        {}", quoted("1:action:(" + words + ")"));
    if (command.takes_files) script += " \\\n        '*:file:_files'";
    script += "\n      ;;\n";
  }
  script += "  esac\n}\n_sluice \"$@\"\n";
  return script;
}

std::string fish(const std::vector<CompletedCommand>& commands) {
  // A quote between quotes of fish has a backslash before it.
  const auto fish_quoted = [](std::string_view text) {
    std::string result = "'";
    for (const char character : text) {
      if (character == '\'' || character == '\\') result += '\\';
      result += character;
    }
    return result + "'";
  };
  std::string script = "# fish completion for sluice\ncomplete -c sluice -f\n";
  for (const CompletedCommand& command : commands) {
    fmt::format_to(std::back_inserter(script), "complete -c sluice -n __fish_use_subcommand -a {} -d {}\n",
                   command.name, fish_quoted(command.help));
    const std::string here = "complete -c sluice -n '__fish_seen_subcommand_from " + command.name + "'";
    for (const CompletedOption& option : command.options) {
      const ValueKind* kind = kind_of(option);
      std::string takes;
      if (!option.value.empty()) takes = kind != nullptr && kind->words.empty() ? " -r -F" : " -x";
      if (kind != nullptr && !kind->words.empty()) takes += " -a " + fish_quoted(kind->words);
      fmt::format_to(std::back_inserter(script), "{} -l {}{} -d {}\n", here, option.name.substr(2), takes,
                     fish_quoted(option.help));
    }
    for (const std::string& argument : command.words)
      fmt::format_to(std::back_inserter(script), "{} -a {}\n", here, argument);
    if (command.takes_files) script += here + " -F\n";
  }
  return script;
}

}  // namespace

std::optional<std::string> completion_script(std::string_view shell, const std::vector<CompletedCommand>& commands) {
  if (shell == "bash") return bash(commands);
  if (shell == "zsh") return zsh(commands);
  if (shell == "fish") return fish(commands);
  return std::nullopt;
}

}  // namespace sluice::cli
