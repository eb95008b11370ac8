// The rights of users at Redis, as the manual tells them.
#pragma once

#include <string>
#include <string_view>

namespace sluice::testing {

/// The line below "# <title>" in docs/operations.md, "ACL SETUSER sluice …", as a line of a server's file: "user …".
/// Throws std::runtime_error when there is none.
[[nodiscard]] std::string documented_user(std::string_view title);
/// The rights in that line alone: "+get +set …".
[[nodiscard]] std::string documented_rights(std::string_view title);

inline constexpr std::string_view kOneServer = "one server";
inline constexpr std::string_view kBehindSentinel = "each master and replica behind Sentinel";
inline constexpr std::string_view kSentinels = "each sentinel";
inline constexpr std::string_view kClusterNodes = "each node of a cluster";
inline constexpr std::string_view kOperators = "besides, for sluice keys";
inline constexpr std::string_view kQueues = "besides, for queues";

}  // namespace sluice::testing
