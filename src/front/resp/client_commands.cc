#include "front/resp/client_commands.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "front/resp/command_table.h"
#include "front/resp/throttle.h"

namespace sluice::resp {
namespace {

using Arguments = std::span<const std::string_view>;

constexpr std::string_view kVersion = SLUICE_VERSION;
// What clients may expect of the commands that are here.
constexpr std::string_view kRedisVersion = "7.0.0";

std::string_view word(Arguments arguments, std::size_t index) {
  return index < arguments.size() ? arguments[index] : std::string_view();
}

bool is(std::string_view word, std::string_view name) { return equal_ignoring_case(word, name); }

void ping(Arguments arguments, ReplyWriter& reply) {
  if (arguments.size() > 2) {
    reply.error(wrong_arity("ping"));
  } else if (arguments.size() == 2) {
    reply.bulk(arguments[1]);
  } else {
    reply.simple("PONG");
  }
}

void echo(Arguments arguments, ReplyWriter& reply) {
  if (arguments.size() != 2) {
    reply.error(wrong_arity("echo"));
  } else {
    reply.bulk(arguments[1]);
  }
}

void auth(Arguments arguments, Client& client, std::int64_t steady, ReplyWriter& reply) {
  if (arguments.size() < 2 || arguments.size() > 3) {
    reply.error(wrong_arity("auth"));
    return;
  }
  const std::string_view user = arguments.size() == 3 ? arguments[1] : "default";
  if (const auto refusal = client.rights.give(user, arguments.back(), steady)) {
    reply.error(*refusal);
  } else {
    reply.simple("OK");
  }
}

bool is_name(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f; });
}

constexpr std::string_view kBadName = "ERR a client's name has no spaces, line ends or special characters";

void write_hello(const Client& client, ReplyWriter& reply) {
  reply.map(7);
  reply.bulk("server");
  reply.bulk("sluice");
  reply.bulk("version");
  reply.bulk(kRedisVersion);
  reply.bulk("proto");
  reply.integer(client.protocol);
  reply.bulk("id");
  reply.integer(static_cast<std::int64_t>(client.id));
  reply.bulk("mode");
  reply.bulk("standalone");
  reply.bulk("role");
  reply.bulk("master");
  reply.bulk("modules");
  reply.array(0);
}

void hello(Arguments arguments, Client& client, std::int64_t steady, std::string& out) {
  ReplyWriter refusal(out, client.protocol);
  int protocol = client.protocol;
  std::size_t next = 1;
  if (next < arguments.size()) {
    if (arguments[next] != "2" && arguments[next] != "3") {
      refusal.error("NOPROTO the protocols are 2 and 3");
      return;
    }
    protocol = arguments[next++] == "3" ? 3 : 2;
  }
  std::optional<std::string_view> name;
  while (next < arguments.size()) {
    const std::size_t left = arguments.size() - next;
    if (is(arguments[next], "auth") && left >= 3) {
      if (const auto why = client.rights.give(arguments[next + 1], arguments[next + 2], steady)) {
        refusal.error(*why);
        return;
      }
      next += 3;
    } else if (is(arguments[next], "setname") && left >= 2) {
      name = arguments[next + 1];
      if (!is_name(*name)) {
        refusal.error(kBadName);
        return;
      }
      next += 2;
    } else {
      refusal.error("ERR syntax error in HELLO option " + quoted(arguments[next]));
      return;
    }
  }
  if (!client.rights.may_speak(steady)) {
    refusal.error("NOAUTH say HELLO with AUTH user password, or AUTH first");
    return;
  }
  client.protocol = protocol;
  if (name) client.name = *name;
  ReplyWriter reply(out, protocol);
  write_hello(client, reply);
}

void select(Arguments arguments, ReplyWriter& reply) {
  if (arguments.size() != 2) {
    reply.error(wrong_arity("select"));
  } else if (arguments[1] == "0") {
    reply.simple("OK");
  } else {
    reply.error(
        "ERR there is only database 0: leave the number out of the client's address, and put it into the keys if it "
        "tells them apart");
  }
}

using Subcommands = std::span<const CommandInfo>;

constexpr std::array<CommandInfo, 6> kClientSubcommands = {{{"id", 2, false, "", ""},
                                                            {"getname", 2, false, "", ""},
                                                            {"setname", 3, false, "", ""},
                                                            {"setinfo", 4, false, "", ""},
                                                            {"no-evict", 3, false, "", ""},
                                                            {"no-touch", 3, false, "", ""}}};
constexpr std::array<CommandInfo, 4> kCommandSubcommands = {{{"count", 2, false, "", ""},
                                                             {"list", 2, false, "", ""},
                                                             {"docs", -2, false, "", ""},
                                                             {"info", -2, false, "", ""}}};

void client_command(Arguments arguments, Client& client, ReplyWriter& reply) {
  const std::string_view what = word(arguments, 1);
  if (const auto refusal = refuse_subcommand(arguments)) {
    reply.error(*refusal);
  } else if (is(what, "id")) {
    reply.integer(static_cast<std::int64_t>(client.id));
  } else if (is(what, "getname")) {
    if (client.name.empty()) {
      reply.null();
    } else {
      reply.bulk(client.name);
    }
  } else if (is(what, "setname")) {
    if (!is_name(arguments[2])) {
      reply.error(kBadName);
      return;
    }
    client.name = arguments[2];
    reply.simple("OK");
  } else {
    reply.simple("OK");  // there is nothing to do about the others
  }
}

void write_info(const CommandInfo& command, ReplyWriter& reply) {
  const int key = command.has_key ? 1 : 0;
  reply.array(6);
  reply.bulk(command.name);
  reply.integer(command.arity);
  reply.array(command.has_key ? 2 : 1);
  if (command.has_key) reply.simple("write");
  reply.simple("fast");
  reply.integer(key);
  reply.integer(key);
  reply.integer(key);
}

// Takes the first of `arguments`, which are as CommandInfo has them; what is in brackets is one.
std::string_view next_argument(std::string_view& arguments) {
  const bool is_optional = arguments.starts_with('[');
  const std::size_t end = arguments.find(is_optional ? ']' : ' ');
  const std::size_t size = end == std::string_view::npos ? arguments.size() : end + (is_optional ? 1 : 0);
  const std::string_view argument = arguments.substr(0, size);
  arguments.remove_prefix(std::min(size + 1, arguments.size()));
  return argument;
}

void write_docs(const CommandInfo& command, ReplyWriter& reply) {
  std::size_t count = 0;
  for (std::string_view rest = command.arguments; !rest.empty(); ++count) next_argument(rest);
  reply.bulk(command.name);
  reply.map(count == 0 ? 3 : 4);
  reply.bulk("summary");
  reply.bulk(command.summary);
  reply.bulk("since");
  reply.bulk(kVersion);
  reply.bulk("group");
  reply.bulk(command.has_key ? "limiter" : "server");
  if (count == 0) return;
  reply.bulk("arguments");
  reply.array(count);
  for (std::string_view rest = command.arguments; !rest.empty();) {
    std::string_view name = next_argument(rest);
    const bool is_optional = name.starts_with('[');
    if (is_optional) name = name.substr(1, name.size() - 2);
    reply.map(is_optional ? 3 : 2);
    reply.bulk("name");
    reply.bulk(name);
    reply.bulk("type");
    reply.bulk("string");
    if (!is_optional) continue;
    reply.bulk("flags");
    reply.array(1);
    reply.simple("optional");
  }
}

void docs(Arguments names, ReplyWriter& reply) {
  std::vector<const CommandInfo*> found;
  for (const CommandInfo& one : kCommandTable) {
    const bool is_wanted = std::ranges::any_of(names, [&](std::string_view name) { return is(name, one.name); });
    if (names.empty() || is_wanted) found.push_back(&one);
  }
  reply.map(found.size());
  for (const CommandInfo* one : found) write_docs(*one, reply);
}

void command(Arguments arguments, ReplyWriter& reply) {
  const std::string_view what = word(arguments, 1);
  if (const auto refusal = refuse_subcommand(arguments)) {
    reply.error(*refusal);
  } else if (arguments.size() == 1) {
    reply.array(kCommandTable.size());
    for (const CommandInfo& one : kCommandTable) write_info(one, reply);
  } else if (is(what, "count")) {
    reply.integer(static_cast<std::int64_t>(kCommandTable.size()));
  } else if (is(what, "list")) {
    reply.array(kCommandTable.size());
    for (const CommandInfo& one : kCommandTable) reply.bulk(one.name);
  } else if (is(what, "docs")) {
    docs(arguments.subspan(2), reply);
  } else {
    reply.array(arguments.size() - 2);
    for (const std::string_view name : arguments.subspan(2)) {
      if (const CommandInfo* one = find_command(name)) {
        write_info(*one, reply);
      } else {
        reply.null();
      }
    }
  }
}

struct Section {
  std::string_view name;
  std::string lines;

  // Those that are asked for; all when none is named. Of names that nothing here has, as Redis, nothing.
  [[nodiscard]] bool is_wanted(Arguments names) const {
    return names.empty() || std::ranges::any_of(names, [this](std::string_view asked) {
             return is(asked, name) || is(asked, "default") || is(asked, "all") || is(asked, "everything");
           });
  }
};

void info(Arguments arguments, const Client& client, ReplyWriter& reply) {
  std::string server = "# Server\r\nredis_version:";
  server.append(kRedisVersion).append("\r\nredis_mode:standalone\r\nserver_name:sluice\r\nsluice_version:");
  server.append(kVersion).append("\r\n");
  const std::array<Section, 3> sections = {{{"server", std::move(server)},
                                            {"clients", "# Clients\r\nclient_id:" + std::to_string(client.id) + "\r\n"},
                                            {"replication", "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"}}};
  std::string text;
  for (const Section& section : sections) {
    if (!section.is_wanted(arguments.subspan(1))) continue;
    if (!text.empty()) text += "\r\n";
    text += section.lines;
  }
  reply.bulk(text);
}

void reset(Client& client, std::string& out) {
  client.protocol = 2;
  client.name.clear();
  client.rights.forget();
  ReplyWriter(out, client.protocol).simple("RESET");
}

}  // namespace

std::optional<std::string> refuse_subcommand(Arguments arguments) {
  const bool is_client = is(arguments.front(), "client");
  if (!is_client && (!is(arguments.front(), "command") || arguments.size() == 1)) return std::nullopt;
  const std::string_view what = word(arguments, 1);
  for (const CommandInfo& one : is_client ? Subcommands(kClientSubcommands) : Subcommands(kCommandSubcommands)) {
    if (is(what, one.name) && one.takes(arguments.size())) return std::nullopt;
  }
  return (is_client ? "ERR CLIENT has ID, GETNAME, SETNAME name, SETINFO what text, NO-EVICT and NO-TOUCH; not "
                    : "ERR COMMAND has COUNT, LIST, DOCS and INFO; not ") +
         quoted(what);
}

bool needs_no_password(Arguments arguments) {
  const std::string_view command = arguments.front();
  return is(command, "auth") || is(command, "hello") || is(command, "quit") ||
         (is(command, "reset") && arguments.size() == 1);
}

Outcome answer_client(Arguments arguments, Client& client, std::int64_t steady, std::string& out) {
  const std::string_view name = arguments.front();
  ReplyWriter reply(out, client.protocol);
  if (is(name, "ping")) {
    ping(arguments, reply);
  } else if (is(name, "echo")) {
    echo(arguments, reply);
  } else if (is(name, "quit")) {
    reply.simple("OK");
    return Outcome::quit;
  } else if (is(name, "hello")) {
    hello(arguments, client, steady, out);
  } else if (is(name, "auth")) {
    auth(arguments, client, steady, reply);
  } else if (is(name, "select")) {
    select(arguments, reply);
  } else if (is(name, "client")) {
    client_command(arguments, client, reply);
  } else if (is(name, "command")) {
    command(arguments, reply);
  } else if (is(name, "info")) {
    info(arguments, client, reply);
  } else if (is(name, "reset") && arguments.size() == 1) {
    reset(client, out);
  } else {
    return Outcome::unknown;
  }
  return Outcome::answered;
}

}  // namespace sluice::resp
