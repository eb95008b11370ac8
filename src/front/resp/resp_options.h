// What a RESP listener is told by its owner.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "identity/guard.h"

namespace sluice::resp {

/// Defaults are what the daemon uses. Meanings and bounds: docs/resp.md.
struct RespOptions {
  std::string password;   ///< empty: none is asked for
  identity::Guard guard;  ///< of commands that change counters otherwise than by a check

  std::size_t max_waiting = 1'024;  ///< commands of a connection that the store may have yet to answer
  std::size_t max_unsent =
      std::size_t{64} * 1024;  ///< bytes of replies waiting for a slow reader before its commands wait, too

  std::chrono::nanoseconds command_timeout = std::chrono::seconds(10);  ///< first byte of a command to its last
  std::chrono::nanoseconds idle_timeout{};  ///< between commands; 0: for ever, as clients that pool connections expect
  std::chrono::nanoseconds write_timeout = std::chrono::seconds(10);  ///< without the peer taking a byte of the replies
};

}  // namespace sluice::resp
