// What clients say beside the commands on counters: who they are, which protocol, is anybody there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "front/resp/reply_writer.h"
#include "front/resp/resp_options.h"

namespace sluice::resp {

/// What a connection has said of itself.
struct Client {
  explicit Client(std::uint64_t number) : id(number) {}
  std::uint64_t id;
  int protocol = 2;
  bool is_trusted = false;  ///< has given the password, or needs none
  std::string name;
};

enum class Outcome : std::uint8_t {
  answered,
  quit,    ///< answered; the connection is to be closed
  unknown  ///< no such command; nothing was written
};

/// Answers PING, ECHO, QUIT, HELLO, AUTH, SELECT, CLIENT, COMMAND, INFO, and RESET without a key. `arguments` begins
/// with the command's name. Not thread-safe. Passwords are compared in a time that says nothing of them.
[[nodiscard]] Outcome answer_client(std::span<const std::string_view> arguments, Client& client,
                                    const RespOptions& options, std::string& out);

/// May it be said before the password?
[[nodiscard]] bool needs_no_password(std::span<const std::string_view> arguments);

}  // namespace sluice::resp
