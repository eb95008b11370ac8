// The command line. The one file that includes CLI11, as that takes long to compile.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/suggest.h"
#include "cli/bench.h"
#include "cli/check.h"
#include "cli/completion.h"
#include "cli/drain.h"
#include "cli/keys.h"
#include "cli/lint.h"
#include "cli/printable.h"
#include "cli/serve.h"
#include "config/settings.h"

namespace {

using sluice::cli::ServeOptions;

constexpr std::string_view kHelp =
    R"(Sluice decides whether a request may pass: a rate limiter that Envoy, nginx and programs ask.

Usage: sluice COMMAND [OPTIONS]

Commands:
  serve    Run the daemon: answers over gRPC (Envoy's RateLimitService) and HTTP
  check    Make one decision here and now; exit code 0: allowed, 2: denied, 1: error
  drain    Work off a queue of requests beyond their limit, at the limit's rate
  keys     Look at counters in Redis, or forget them
  lint     Read policy files and tell what is wrong with them
  bench    Put load on a daemon or the library, and check what is admitted; exit code 2: too much
  config   Print the settings that serve would run with, and where each comes from
  completion  Print what bash, zsh or fish completes commands and options by

Examples:
  sluice serve --policy examples/policies/article.yaml
      Serve that policy: HTTP on 127.0.0.1:8080, gRPC on 127.0.0.1:8081, counters in memory
  sluice serve --policy policies/ --store.redis.url redis://127.0.0.1:6379
      The same limits shared by any number of daemons
  sluice check --policy examples/policies/article.yaml user=42
      Would this request pass?

'sluice COMMAND --help' tells more of each. Every option of serve is also an environment variable
(SLUICE_LISTEN_HTTP) and a key of the server file (--config FILE).
)";

int fail(std::string_view command, const std::string& message) {
  std::cerr << "sluice" << (command.empty() ? "" : " ") << command << ": " << message << '\n';
  return EXIT_FAILURE;
}

// "--listn.http=…" → "; did you mean --listen.http?"
std::string suggestion(const CLI::App& command, std::string_view argument) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string_view near = sluice::nearest(argument.substr(0, argument.find('=')), candidates);
  if (near.empty()) return "; see 'sluice " + command.get_name() + " --help'";
  return "; did you mean " + std::string(near) + "?";
}

std::string unexpected(const CLI::App& command, const std::string& argument) {
  if (argument.starts_with('-')) return "unknown flag " + argument + suggestion(command, argument);
  return "unexpected argument '" + argument + "'; see 'sluice " + command.get_name() + " --help'";
}

int unknown_command(const std::string& name) {
  if (name.starts_with('-')) return fail("", "unknown flag " + name + "; see 'sluice --help'");
  constexpr std::array<std::string_view, 8> commands{"drain",  "serve", "check", "lint",
                                                     "config", "bench", "keys",  "completion"};
  const std::string_view near = sluice::nearest(name, commands);
  return fail("", "unknown command '" + name + "'" +
                      (near.empty() ? "; see 'sluice --help'" : "; did you mean '" + std::string(near) + "'?"));
}

/// What CLI11 finds wrong with the value of an option, in a sentence. Its own texts begin with the option's name, or
/// with "Could not convert: NAME = VALUE".
std::string sentence_of(const CLI::ParseError& problem) {
  const std::string_view text = problem.what();
  constexpr std::string_view conversion = "Could not convert: ";
  if (text.starts_with(conversion)) {
    const std::string_view rest = text.substr(conversion.size());
    const std::string_view name = rest.substr(0, rest.find(' '));
    const std::size_t value = rest.find("= ");
    if ((name == "--cost" || name == "--repeat") && value != std::string_view::npos) {
      return std::string(name) + ": expected a whole number, found '" + std::string(rest.substr(value + 2)) + "'";
    }
    return std::string(text);
  }
  const std::size_t colon = text.find(": ");
  if (!text.starts_with("--") || colon == std::string_view::npos) return std::string(text);
  const std::string name(text.substr(0, colon));
  if (text.ends_with(" missing")) return name + " needs a value";
  if (text.find("At Most 1 required") != std::string_view::npos) return name + " is given more than once";
  return std::string(text);
}

/// A number in decimal digits: by itself CLI11 takes 0x1 and 010, too, and the latter for 8.
CLI::Validator digits() {
  return CLI::Validator(
      [](const std::string& text) {
        const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
        return is_number ? std::string() : "expected a whole number, found '" + text + "'";
      },
      "", "digits");
}

// A flag a setting, each kept as text: the table reads them all in one way, wherever they come from.
struct SettingFlags {
  SettingFlags() : values(sluice::config::all_settings().size()) {}

  void add_to(CLI::App& command) {
    command.add_option("--config", config, "Server file; flags and environment win over it (SLUICE_CONFIG)")
        ->type_name("FILE")
        ->group("Settings");
    for (std::size_t row = 0; row < values.size(); ++row) {
      const sluice::config::Setting& setting = sluice::config::all_settings()[row];
      std::string help(setting.help);
      if (!setting.fallback.empty()) help += " [" + std::string(setting.fallback) + "]";
      if (setting.is_list) help += "; repeatable";
      command.add_option("--" + std::string(setting.name), values[row], help)
          ->type_name(std::string(setting.value))
          ->expected(1)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
          ->allow_extra_args(false)
          ->group("Settings");
    }
  }

  [[nodiscard]] sluice::cli::ServeOptions options(const CLI::App& command) const {
    ServeOptions result{.config = config, .flags = {}};
    for (std::size_t row = 0; row < values.size(); ++row) {
      const std::string name(sluice::config::all_settings()[row].name);
      if (command.count("--" + name) > 0) result.flags.push_back({.name = name, .values = values[row]});
    }
    return result;
  }

  /// A setting that is no list, given twice.
  [[nodiscard]] std::string repeated() const {
    for (std::size_t row = 0; row < values.size(); ++row) {
      const sluice::config::Setting& setting = sluice::config::all_settings()[row];
      if (!setting.is_list && values[row].size() > 1) return std::string(setting.name);
    }
    return "";
  }

  std::string config;
  std::vector<std::vector<std::string>> values;
};

void add_bench_flags(CLI::App& command, sluice::cli::BenchOptions& options) {
  const auto text = [&](const char* name, std::string& value, const char* type, const char* help) {
    command.add_option(name, value, help)->type_name(type);
  };
  const auto list = [&](const char* name, std::vector<std::string>& values, const char* type, const char* help) {
    command.add_option(name, values, help)
        ->type_name(type)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false);
  };
  list("--target", options.targets, "TARGET",
       "grpc://HOST:PORT, http://HOST:PORT (both repeatable), or in process: memory, or a URL of Redis "
       "[grpc://127.0.0.1:8081]");
  list("--descriptor", options.descriptors, "KEY=VALUES[,KEY=VALUES...]",
       "What is asked for; a value may be {seq:N}, {uniform:N}, {zipf:1.1:N} or {new}; repeatable");
  text("--domain", options.domain, "NAME", "Domain asked; may be left out when the policy has one only");
  list("--policy", options.policy, "PATH", "Policy of the daemon: what is admitted is checked against it; repeatable");
  text("--limit", options.limit, "NUMBERS", "In place of a policy: what stands between the braces of its rate_limit");
  text("--cost", options.cost, "NUMBER", "Tokens a request asks for [1]");
  text("--rate", options.rate, "NUMBER", "Requests a second, planned whether answers come or not; or max [max]");
  text("--duration", options.duration, "TIME", "How long to ask [10s]");
  text("--connections", options.connections, "NUMBER", "Connections, of all targets together [4; http: 64]");
  text("--in-flight", options.in_flight, "NUMBER", "Most requests of a connection without an answer [16; http: 1]");
  text("--timeout", options.timeout, "TIME", "Of a check in process on Redis [20ms]");
  text("--seed", options.seed, "NUMBER", "Of random values [1]");
  text("--restarts", options.restarts, "NUMBER", "The store was restarted empty so often: a burst more a key each");
  text("--evictions", options.evictions, "NUMBER", "The store evicted so many keys: a burst more each");
  text("--outage", options.outage, "TIME", "So long daemons may have answered by themselves (gRPC does not tell)");
  text("--nodes", options.nodes, "NUMBER", "How many daemons may have [the number of targets]");
  text("--clock-slack", options.clock_slack, "TIME", "Most that clocks differ, for windows [10ms]");
  command.add_flag("--no-check", options.no_check, "Do not check what is admitted");
  command.add_flag("--json", options.json, "Report as one JSON object");
  command.add_flag("--quiet", options.quiet, "Tell nothing before the report");
}

CLI::App* add_keys(CLI::App& app, sluice::cli::KeysOptions& options, SettingFlags& flags) {
  CLI::App* keys = app.add_subcommand(
      "keys", "Look at counters in Redis (inspect), or forget them (reset). Exit code 0: done, 1: error or refused.");
  keys->add_option("action", options.action, "inspect or reset")->type_name("ACTION");
  keys->add_option("descriptor", options.descriptors,
                   "A descriptor each: its entries in order, separated by commas; needs --policy")
      ->type_name("KEY=VALUE[,KEY=VALUE...]");
  keys->add_option("--domain", options.domain, "Domain; may be left out when the policy has one only")
      ->type_name("NAME");
  keys->add_option("--key", options.keys, "A key as it is named in Redis; repeatable")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  keys->add_option("--pattern", options.pattern, "All keys of this pattern, as SCAN takes it")->type_name("GLOB");
  keys->add_option("--most", options.most, "Most keys of the pattern; with more, nothing is done [1000]")
      ->type_name("NUMBER");
  keys->add_flag("--json", options.json, "One JSON object a line");
  keys->add_flag("--yes", options.yes, "reset by a pattern without asking");
  flags.add_to(*keys);
  return keys;
}

// A command's description up to its first pause.
std::string first_words(const std::string& text) {
  const std::string words = text.substr(0, text.find_first_of(".(;:"));
  return words.substr(0, words.find_last_not_of(' ') + 1);
}

int print_completion(const CLI::App& app, const std::string& shell) {
  std::vector<sluice::cli::CompletedCommand> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    sluice::cli::CompletedCommand shape{.name = command->get_name(),
                                        .help = first_words(command->get_description()),
                                        .words = {},
                                        .takes_files = command->get_name() == "lint",
                                        .options = {}};
    if (shape.name == "keys") shape.words = {"inspect", "reset"};
    if (shape.name == "completion") shape.words = {"bash", "zsh", "fish"};
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_positional() || option->get_lnames().empty()) continue;
      const bool is_flag = option->get_items_expected_max() == 0;
      shape.options.push_back({.name = "--" + option->get_lnames().front(),
                               .value = is_flag ? "" : option->get_type_name(),
                               .help = option->get_description()});
    }
    commands.push_back(std::move(shape));
  }
  const auto script = sluice::cli::completion_script(shell, commands);
  if (!script) return fail("completion", "no such shell: '" + shell + "'; expected bash, zsh or fish");
  std::cout << *script;
  return EXIT_SUCCESS;
}

int run(int argc, char** argv) {
  CLI::App app;
  app.allow_extras();
  app.set_help_flag();
  bool help = false;
  bool version = false;
  app.add_flag("-h,--help", help);
  app.add_flag("--version", version);

  CLI::App* serve =
      app.add_subcommand("serve", "Run the daemon: answers over gRPC (Envoy's RateLimitService) and HTTP.");
  CLI::App* config =
      app.add_subcommand("config", "Print the settings that serve would run with, and where each comes from.");
  SettingFlags serve_flags;
  SettingFlags config_flags;
  serve_flags.add_to(*serve);
  config_flags.add_to(*config);

  sluice::cli::CheckOptions check_options;
  CLI::App* check = app.add_subcommand(
      "check", "Make one decision here and now, on fresh counters. Exit code 0: allowed, 2: denied, 1: error.");
  check->add_option("--policy", check_options.policy, "Policy file or directory; repeatable")
      ->type_name("PATH")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  check->add_option("--domain", check_options.domain, "Domain asked; may be left out when the policy has one only")
      ->type_name("NAME");
  check->add_option("--cost", check_options.cost, "Tokens asked for [1]")->type_name("NUMBER")->check(digits());
  check->add_flag("--json", check_options.json, "Answer as one JSON object");
  check->add_option("--repeat", check_options.repeat, "Make so many decisions at one instant [1]")
      ->type_name("NUMBER")
      ->check(digits());
  check
      ->add_option("descriptor", check_options.descriptors,
                   "A descriptor each: its entries in order, separated by commas (\\, is a comma in a value)")
      ->type_name("KEY=VALUE[,KEY=VALUE...]");

  sluice::cli::LintOptions lint_options;
  sluice::cli::KeysOptions keys_options;
  SettingFlags keys_flags;
  CLI::App* keys = add_keys(app, keys_options, keys_flags);

  CLI::App* lint = app.add_subcommand(
      "lint",
      "Read policy files and tell what is wrong with them, one finding a line. Exit code 0: nothing, 1: errors.");
  lint->add_flag("--strict", lint_options.strict, "Warnings count as errors");
  std::string lint_compat;
  lint->add_option("--compat", lint_compat, "envoyproxy: as serve --compat envoyproxy reads them (SLUICE_COMPAT) [off]")
      ->type_name("SERVICE");
  lint->add_option("path", lint_options.paths, "Policy files and directories")->type_name("PATH");

  sluice::cli::BenchOptions bench_options;
  CLI::App* bench = app.add_subcommand(
      "bench",
      "Put load on a daemon or the library, and check what is admitted. Exit code 0: done, 1: error, 2: more "
      "was admitted than the limits allow.");
  add_bench_flags(*bench, bench_options);

  sluice::cli::DrainOptions drain_options;
  SettingFlags drain_flags;
  CLI::App* drain =
      app.add_subcommand("drain", "Work off a queue of requests beyond their limit, at the limit's rate.");
  drain_flags.add_to(*drain);
  drain->add_option("--queue", drain_options.queue, "Queue of the server file")->type_name("NAME");
  drain->add_option("--deliver", drain_options.deliver, "Deliver over HTTP to this server: http[s]://host:port[/base]")
      ->type_name("URL");
  drain->add_option("--ca", drain_options.ca, "Authorities to trust behind https:// [those of the system]")
      ->type_name("FILE");
  drain->add_option("--exec", drain_options.exec, "Deliver by this command, with the body on standard input")
      ->type_name("COMMAND");
  drain->add_flag("--stdout", drain_options.to_stdout, "Deliver as lines of JSON on standard output");
  drain->add_option("--in-flight", drain_options.in_flight, "Most deliveries at once [64]")->type_name("NUMBER");
  drain->add_option("--attempts", drain_options.attempts, "Tries until a request is a dead letter [5]")
      ->type_name("NUMBER");
  drain->add_option("--timeout", drain_options.timeout, "Of a delivery [30s]")->type_name("DURATION");
  drain->add_option("--pause", drain_options.pause, "After the first failure; then twice as long, up to 30s [1s]")
      ->type_name("DURATION");
  drain->add_option("--report", drain_options.report, "Log the counts so often; without it at the end only")
      ->type_name("DURATION");

  std::string shell;
  CLI::App* completion = app.add_subcommand("completion", "Print what a shell completes commands and options by.");
  completion->add_option("shell", shell, "bash, zsh or fish")->type_name("SHELL");

  for (CLI::App* command : {serve, config, drain, check, lint, bench, keys, completion}) {
    command->allow_extras();
    command->set_help_flag("-h,--help", "Show this");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.get_subcommands().front()->help("sluice");
    return EXIT_SUCCESS;
  } catch (const CLI::ParseError& problem) {
    const auto used = app.get_subcommands();
    return fail(used.empty() ? "" : used.front()->get_name(), sentence_of(problem));
  }

  if (version) {
    std::cout << "sluice " SLUICE_VERSION "\n";
    return EXIT_SUCCESS;
  }
  if (help) {
    std::cout << kHelp;
    return EXIT_SUCCESS;
  }
  const auto used = app.get_subcommands();
  if (const auto rest = app.remaining(); !rest.empty()) return unknown_command(rest.front());
  if (used.empty()) {
    std::cerr << kHelp;
    return EXIT_FAILURE;
  }
  const CLI::App& command = *used.front();
  if (used.size() > 1) return fail(command.get_name(), unexpected(command, used[1]->get_name()));
  for (const std::string& argument : command.remaining()) {
    // What only says that positional arguments follow stays among the rest.
    if (argument != "--") return fail(command.get_name(), unexpected(command, argument));
  }

  if (used.front() == serve || used.front() == config) {
    const SettingFlags& flags = used.front() == serve ? serve_flags : config_flags;
    if (const std::string name = flags.repeated(); !name.empty()) {
      return fail(command.get_name(), "--" + name + " is given more than once");
    }
    const ServeOptions options = flags.options(command);
    return used.front() == serve ? sluice::cli::serve(options, std::cerr)
                                 : sluice::cli::show_settings(options, std::cout, std::cerr);
  }
  if (used.front() == drain) {
    if (const std::string name = drain_flags.repeated(); !name.empty()) {
      return fail("drain", "--" + name + " is given more than once");
    }
    if (drain_options.queue.empty()) return fail("drain", "no queue: name one of the server file with --queue");
    drain_options.settings = drain_flags.options(*drain);
    return sluice::cli::drain(drain_options, std::cerr);
  }
  if (used.front() == keys) {
    if (const std::string name = keys_flags.repeated(); !name.empty()) {
      return fail("keys", "--" + name + " is given more than once");
    }
    keys_options.settings = keys_flags.options(command);
    return sluice::cli::keys(keys_options, std::cin, isatty(STDIN_FILENO) == 1, std::cout, std::cerr);
  }
  if (used.front() == check) {
    if (check_options.policy.empty()) return fail("check", "no policy: name a file or directory with --policy");
    if (check_options.descriptors.empty())
      return fail("check", "no descriptor: name what is asked for, such as user=42");
    return sluice::cli::check(check_options, std::cout, std::cerr);
  }
  if (used.front() == completion) return print_completion(app, shell);
  if (used.front() == bench) return sluice::cli::bench(bench_options, std::cout, std::cerr);
  if (const char* variable = std::getenv("SLUICE_COMPAT"); lint_compat.empty() && variable != nullptr) {
    lint_compat = variable;
  }
  lint_options.as_envoyproxy = lint_compat == "envoyproxy";
  if (!lint_compat.empty() && lint_compat != "off" && !lint_options.as_envoyproxy) {
    return fail("lint", "--compat: expected envoyproxy or off, found '" + lint_compat + "'");
  }
  if (lint_options.paths.empty() && !lint_options.as_envoyproxy) {
    return fail("lint", "no policy: name files or directories");
  }
  if (lint_options.as_envoyproxy) lint_options.environment = sluice::cli::environment();
  return sluice::cli::lint(lint_options, std::cout);
}

// Names and words from outside cannot command a terminal, nor break JSON.
class SafeStream {
 public:
  explicit SafeStream(std::ostream& stream) : stream_(stream), raw_(stream.rdbuf()), safe_(*raw_) {
    stream_.rdbuf(&safe_);
  }
  ~SafeStream() { stream_.rdbuf(raw_); }
  SafeStream(const SafeStream&) = delete;
  SafeStream& operator=(const SafeStream&) = delete;

 private:
  std::ostream& stream_;
  std::streambuf* const raw_;
  sluice::cli::SafeOutput safe_;
};

// An image of envoyproxy/ratelimit is told to run /bin/ratelimit: by its place, or as what comes after ours.
std::vector<char*> arguments_of(std::span<char*> given) {
  static std::array<char, 6> serve{"serve"};
  static std::array<char, 9> compat{"--compat"};
  static std::array<char, 11> envoyproxy{"envoyproxy"};
  const auto is_ratelimit = [](std::string_view path) { return path.substr(path.rfind('/') + 1) == "ratelimit"; };
  std::vector<char*> arguments(given.begin(), given.end());
  std::size_t at = 0;
  while (at < arguments.size() && at < 2 && !is_ratelimit(arguments[at])) ++at;
  if (at == arguments.size() || at == 2) return arguments;
  const std::array replacement{serve.data(), compat.data(), envoyproxy.data()};
  arguments.erase(arguments.begin() + 1, arguments.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  arguments.insert(arguments.begin() + 1, replacement.begin(), replacement.end());
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  const SafeStream out(std::cout);
  const SafeStream err(std::cerr);
  try {
    std::vector<char*> arguments = arguments_of({argv, static_cast<std::size_t>(argc)});
    const int code = run(static_cast<int>(arguments.size()), arguments.data());
    // An answer that nobody could read is no success.
    if (!std::cout.flush()) return fail("", "cannot write to standard output");
    return code;
  } catch (const std::exception& problem) {
    std::cerr << "sluice: " << problem.what() << '\n';
    return EXIT_FAILURE;
  }
}
