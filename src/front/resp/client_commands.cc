#include "front/resp/client_commands.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/ascii.h"
#include "front/resp/command_table.h"
#include "front/resp/throttle.h"

namespace sluice::resp {
namespace {

using Arguments = std::span<const std::string_view>;
using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

constexpr std::string_view kVersion = SLUICE_VERSION;
// What clients may expect of the commands that are here.
constexpr std::string_view kRedisVersion = "7.0.0";

Digest digest_of(std::string_view text) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

bool is_password(std::string_view given, std::string_view right) {
  const Digest one = digest_of(given);
  const Digest other = digest_of(right);
  return CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

std::string wrong_arity(std::string_view command) {
  return "ERR wrong number of arguments for '" + std::string(command) + "' command";
}

std::string_view word(Arguments arguments, std::size_t index) {
  return index < arguments.size() ? arguments[index] : std::string_view();
}

bool is(std::string_view word, std::string_view name) { return equal_ignoring_case(word, name); }

// Why these credentials are refused.
std::optional<std::string_view> refuse(std::string_view user, std::string_view password, Client& client,
                                       const RespOptions& options) {
  if (options.password.empty()) return "ERR AUTH was sent, but this server has no password";
  const bool is_right = is_password(password, options.password);
  if (user != "default" || !is_right) return "WRONGPASS user or password is wrong";
  client.is_trusted = true;
  return std::nullopt;
}

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

void auth(Arguments arguments, Client& client, const RespOptions& options, ReplyWriter& reply) {
  if (arguments.size() < 2 || arguments.size() > 3) {
    reply.error(wrong_arity("auth"));
    return;
  }
  const std::string_view user = arguments.size() == 3 ? arguments[1] : "default";
  if (const auto refusal = refuse(user, arguments.back(), client, options)) {
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

void hello(Arguments arguments, Client& client, const RespOptions& options, std::string& out) {
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
      if (const auto why = refuse(arguments[next + 1], arguments[next + 2], client, options)) {
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
  if (!client.is_trusted) {
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
    reply.error("ERR there is only database 0");
  }
}

void client_command(Arguments arguments, Client& client, ReplyWriter& reply) {
  const std::string_view what = word(arguments, 1);
  if (is(what, "id") && arguments.size() == 2) {
    reply.integer(static_cast<std::int64_t>(client.id));
  } else if (is(what, "getname") && arguments.size() == 2) {
    if (client.name.empty()) {
      reply.null();
    } else {
      reply.bulk(client.name);
    }
  } else if (is(what, "setname") && arguments.size() == 3) {
    if (!is_name(arguments[2])) {
      reply.error(kBadName);
      return;
    }
    client.name = arguments[2];
    reply.simple("OK");
  } else if ((is(what, "setinfo") && arguments.size() == 4) || (is(what, "no-evict") && arguments.size() == 3) ||
             (is(what, "no-touch") && arguments.size() == 3)) {
    reply.simple("OK");  // there is nothing to do about it
  } else {
    reply.error("ERR CLIENT has ID, GETNAME, SETNAME name, SETINFO what text, NO-EVICT and NO-TOUCH; not " +
                quoted(what));
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

const CommandInfo* find_command(std::string_view name) {
  const auto found = std::ranges::find_if(kCommandTable, [&](const CommandInfo& one) { return is(name, one.name); });
  return found == kCommandTable.end() ? nullptr : &*found;
}

void command(Arguments arguments, ReplyWriter& reply) {
  const std::string_view what = word(arguments, 1);
  if (arguments.size() == 1) {
    reply.array(kCommandTable.size());
    for (const CommandInfo& one : kCommandTable) write_info(one, reply);
  } else if (is(what, "count")) {
    reply.integer(static_cast<std::int64_t>(kCommandTable.size()));
  } else if (is(what, "list")) {
    reply.array(kCommandTable.size());
    for (const CommandInfo& one : kCommandTable) reply.bulk(one.name);
  } else if (is(what, "docs")) {
    reply.map(0);
  } else if (is(what, "info")) {
    reply.array(arguments.size() - 2);
    for (const std::string_view name : arguments.subspan(2)) {
      if (const CommandInfo* one = find_command(name)) {
        write_info(*one, reply);
      } else {
        reply.null();
      }
    }
  } else {
    reply.error("ERR COMMAND has COUNT, LIST, DOCS and INFO; not " + quoted(what));
  }
}

void info(const Client& client, ReplyWriter& reply) {
  std::string text = "# Server\r\nredis_version:";
  text.append(kRedisVersion).append("\r\nredis_mode:standalone\r\nserver_name:sluice\r\nsluice_version:");
  text.append(kVersion).append("\r\n\r\n# Clients\r\nclient_id:").append(std::to_string(client.id));
  text.append("\r\n\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n");
  reply.bulk(text);
}

void reset(Client& client, const RespOptions& options, std::string& out) {
  client.protocol = 2;
  client.name.clear();
  client.is_trusted = options.password.empty();
  ReplyWriter(out, client.protocol).simple("RESET");
}

}  // namespace

bool needs_no_password(Arguments arguments) {
  const std::string_view command = arguments.front();
  return is(command, "auth") || is(command, "hello") || is(command, "quit") ||
         (is(command, "reset") && arguments.size() == 1);
}

Outcome answer_client(Arguments arguments, Client& client, const RespOptions& options, std::string& out) {
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
    hello(arguments, client, options, out);
  } else if (is(name, "auth")) {
    auth(arguments, client, options, reply);
  } else if (is(name, "select")) {
    select(arguments, reply);
  } else if (is(name, "client")) {
    client_command(arguments, client, reply);
  } else if (is(name, "command")) {
    command(arguments, reply);
  } else if (is(name, "info")) {
    info(client, reply);
  } else if (is(name, "reset") && arguments.size() == 1) {
    reset(client, options, out);
  } else {
    return Outcome::unknown;
  }
  return Outcome::answered;
}

}  // namespace sluice::resp
