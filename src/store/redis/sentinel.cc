#include "store/redis/sentinel.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "store/redis/error_kinds.h"
#include "store/redis/resp_writer.h"

namespace sluice::store::redis {

namespace {

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

bool is_text(const redisReply& reply) { return reply.type == REDIS_REPLY_STRING; }

// "<name> <old host> <old port> <new host> <new port>"
std::optional<Address> parse_switch(std::string_view text, std::string_view master) {
  std::array<std::string_view, 5> words;
  for (std::string_view& word : words) {
    const std::size_t end = std::min(text.find(' '), text.size());
    word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const auto port = parse_port(words[4]);
  if (words[0] != master || words[3].empty() || !port || !text.empty()) return std::nullopt;
  return Address{.host = std::string(words[3]), .port = *port};
}

}  // namespace

std::string explain_sentinel_error(std::string_view error) {
  const Failure kind = classify_error(error);
  std::string_view advice;
  if (kind == Failure::not_authenticated) advice = kSentinelLogin;
  if (kind == Failure::no_permission) advice = kSentinelRights;
  if (error.starts_with("ERR unknown")) advice = kIsNoSentinel;
  return advised(one_line(error), advice);
}

void SentinelClient::ask(std::string& out) {
  replies_ = 0;
  append_command(out, 3);
  append_bulk(out, "SENTINEL");
  append_bulk(out, "get-master-addr-by-name");
  append_bulk(out, master_);
  append_command(out, 2);
  append_bulk(out, "SUBSCRIBE");
  append_bulk(out, "+switch-master");
}

bool SentinelClient::heard(const redisReply& reply) {
  if (replies_++ == 0) {
    if (reply.type == REDIS_REPLY_ERROR) {
      say(explain_sentinel_error(text_of(reply)));
      return false;
    }
    if (reply.type != REDIS_REPLY_ARRAY || reply.elements != 2 || !is_text(*reply.element[0]) ||
        !is_text(*reply.element[1])) {
      say("this sentinel does not know a master of the name " + master_);
      return false;
    }
    const std::string_view host = text_of(*reply.element[0]);
    const auto port = parse_port(text_of(*reply.element[1]));
    if (host.empty() || !port) {
      say("a sentinel names a master without a host or a port");
      return false;
    }
    satisfied();
    learn({.host = std::string(host), .port = *port});
    return true;
  }
  // Without the right to subscribe a switch is noticed all the same, when the old master is lost or refuses.
  const bool is_message = reply.type == REDIS_REPLY_ARRAY && reply.elements == 3 && is_text(*reply.element[0]) &&
                          is_text(*reply.element[2]) && text_of(*reply.element[0]) == "message";
  if (!is_message) return true;
  if (const auto address = parse_switch(text_of(*reply.element[2]), master_)) learn(*address);
  return true;
}

void SentinelClient::learn(const Address& address) {
  fresh_ = asking_.empty() ? std::optional(address) : std::nullopt;
  for (const Found& found : std::exchange(asking_, {})) found(address, {});
  owner_.master_is(address);
}

void SentinelClient::find_master(Found found) {
  if (const auto address = std::exchange(fresh_, std::nullopt)) {
    found(address, {});
    return;
  }
  asking_.push_back(std::move(found));
  if (is_satisfied()) go_on();
}

void SentinelClient::exhausted(std::string_view why) {
  for (const Found& found : std::exchange(asking_, {})) found(std::nullopt, why);
}

}  // namespace sluice::store::redis
