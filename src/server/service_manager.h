// What a service manager such as systemd is told of this process: its notification protocol, which is one datagram a
// change of state (sd_notify(3)).
#pragma once

#include <string_view>

namespace sluice::server {

/// Sends to the socket named by NOTIFY_SOCKET: a path, or a name of the abstract namespace behind a '@'. Without that
/// variable nothing is sent. `state` is lines of NAME=VALUE such as "READY=1". Never blocks; what a manager does not
/// take is lost, and so is told by the return value alone: false when there was a manager and it was not told.
bool tell_service_manager(std::string_view state);

}  // namespace sluice::server
