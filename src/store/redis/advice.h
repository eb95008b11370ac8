// What an operator is told to look at, where the server's or the system's own words don't tell what to mend.
#pragma once

#include <string>
#include <string_view>

namespace sluice::store::redis {

inline constexpr std::string_view kClosedUnheard =
    "it closed the connection before it answered: if its port speaks TLS, store.redis.url begins with rediss (of "
    "sentinels alone: store.redis.sentinel.tls.mode: on)";
inline constexpr std::string_view kClosedAtScript =
    "it closed the connection when it was to run a script: store.redis.url must lead to a server, or a proxy, that "
    "knows "
    "EVALSHA and EVAL";
inline constexpr std::string_view kNotTls =
    "if its port does not speak TLS, store.redis.url begins with redis, not rediss (of sentinels alone: "
    "store.redis.sentinel.tls.mode: off)";
inline constexpr std::string_view kLogin =
    "look at store.redis.username and .password or .password_file, and at what the server's ACL says of that user";
inline constexpr std::string_view kSentinelLogin =
    "look at store.redis.sentinel.username and .password or .password_file";
inline constexpr std::string_view kRights =
    "ACL LOG at the server tells what it refused; docs/operations.md, \"The least rights\", has all that the user "
    "needs, with a key pattern that covers store.redis.prefix";
inline constexpr std::string_view kSentinelRights =
    "docs/operations.md, \"The least rights\", has what store.redis.sentinel.username needs";
inline constexpr std::string_view kFull =
    "its maxmemory is used up and its maxmemory-policy lets it drop nothing: give it more memory, or a policy such as "
    "volatile-ttl";
inline constexpr std::string_view kNoDatabase =
    "the number after the host in store.redis.url (of a socket: db=) must be below the server's `databases`";
inline constexpr std::string_view kNotMaster =
    "it is a replica, and limits are kept at masters alone: store.redis.url must name the master, or sentinels "
    "(redis-sentinel://…) that know it";
inline constexpr std::string_view kIsSentinel =
    "it is a sentinel: write redis-sentinel://HOST:PORT/MASTER in store.redis.url, or the master's name in "
    "store.redis.master";
inline constexpr std::string_view kIsClusterNode =
    "it is a node of a cluster: write redis+cluster:// in store.redis.url";
inline constexpr std::string_view kIsNoCluster =
    "it is no node of a cluster: for one server write redis:// in store.redis.url";
inline constexpr std::string_view kKnowsNoCluster =
    "it is no node of a cluster: if it is a sentinel, write redis-sentinel://HOST:PORT/MASTER in store.redis.url, if a "
    "proxy, redis:// and store.redis.proxy: true";
inline constexpr std::string_view kIsNoSentinel =
    "it is no sentinel: in store.redis.url write redis:// for one server, redis+cluster:// for a cluster, and no "
    "master's name";

/// What bytes mean that are no Redis protocol.
[[nodiscard]] inline std::string_view strange_answer(std::string_view bytes) {
  if (bytes.starts_with("\x15\x03")) {
    return "it answers by TLS: store.redis.url must begin with rediss (of sentinels alone: "
           "store.redis.sentinel.tls.mode: on)";
  }
  if (bytes.starts_with("HTTP/")) return "it answers by HTTP: the port is not that of Redis";
  return "its answer is not of the Redis protocol";
}

/// "words: advice", or the one that there is.
[[nodiscard]] inline std::string advised(std::string_view words, std::string_view advice) {
  std::string text(words);
  if (!text.empty() && !advice.empty()) text += ": ";
  text += advice;
  return text;
}

}  // namespace sluice::store::redis
