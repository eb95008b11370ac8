// What clients say beside the commands on counters: who they are, which protocol, is anybody there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "front/resp/reply_writer.h"
#include "front/resp/rights.h"

namespace sluice::resp {

/// What a connection has said of itself.
struct Client {
  Client(std::uint64_t number, Rights its_rights) : id(number), rights(its_rights) {}
  std::uint64_t id;
  int protocol = 2;
  Rights rights;
  std::string name;
};

enum class Outcome : std::uint8_t {
  answered,
  quit,    ///< answered; the connection is to be closed
  unknown  ///< no such command; nothing was written
};

/// Answers PING, ECHO, QUIT, HELLO, AUTH, SELECT, CLIENT, COMMAND, INFO, and RESET without a key. `arguments` begins
/// with the command's name; `steady` is the time now. Not thread-safe.
[[nodiscard]] Outcome answer_client(std::span<const std::string_view> arguments, Client& client, std::int64_t steady,
                                    std::string& out);

/// Why CLIENT or COMMAND cannot be followed by these words, as an error reply; nothing: it can, or it is another
/// command.
[[nodiscard]] std::optional<std::string> refuse_subcommand(std::span<const std::string_view> arguments);

/// May it be said before the password?
[[nodiscard]] bool needs_no_password(std::span<const std::string_view> arguments);

}  // namespace sluice::resp
