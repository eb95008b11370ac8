#include "store/redis/slots.h"

#include <algorithm>
#include <span>
#include <utility>

#include "store/redis/error_kinds.h"
#include "store/redis/resp_writer.h"

namespace sluice::store::redis {

namespace {

constexpr std::int64_t kLeastInterval = 20'000'000;  // ns
// While something is wrong: ten times as long as an answer takes, between these, so that a replica that takes over is
// noticed soon and a large cluster is not kept busy by telling its map.
constexpr std::int64_t kLeastTroubledInterval = 50'000'000;
constexpr std::int64_t kMostTroubledInterval = 200'000'000;
constexpr std::int64_t kAnswerTimes = 10;
constexpr std::int64_t kUsualInterval = 30'000'000'000;
constexpr int kMostFruitless = 2;

// One element: start, end, the master, its replicas.
bool take_range(const redisReply& range, const Address& asked, SlotMap& map) {
  if (range.type != REDIS_REPLY_ARRAY || range.elements < 3) return false;
  const redisReply& first = *range.element[0];
  const redisReply& last = *range.element[1];
  const redisReply& node = *range.element[2];
  if (first.type != REDIS_REPLY_INTEGER || last.type != REDIS_REPLY_INTEGER || first.integer < 0 ||
      first.integer > last.integer || last.integer >= static_cast<long long>(kSlots)) {
    return false;
  }
  if (node.type != REDIS_REPLY_ARRAY || node.elements < 2) return false;
  const redisReply& host = *node.element[0];
  const redisReply& port = *node.element[1];
  if (port.type != REDIS_REPLY_INTEGER || port.integer < 0 || port.integer > UINT16_MAX) return false;
  const bool knows_host = host.type == REDIS_REPLY_STRING && host.len > 0;
  // A node that nobody can reach: its name is not known.
  if (port.integer == 0 || (knows_host && text_of(host) == "?")) return true;
  const Address address{.host = knows_host ? std::string(text_of(host)) : asked.host,
                        .port = static_cast<std::uint16_t>(port.integer)};
  const std::span<std::uint16_t> slots = std::span(map.owner).subspan(
      static_cast<std::size_t>(first.integer), static_cast<std::size_t>(last.integer - first.integer + 1));
  // A slot has one master, and so each master has a slot.
  if (std::ranges::any_of(slots, [](std::uint16_t owner) { return owner != SlotMap::kNobody; })) return false;
  auto found = std::ranges::find(map.masters, address);
  if (found == map.masters.end()) found = map.masters.insert(found, address);
  std::ranges::fill(slots, static_cast<std::uint16_t>(found - map.masters.begin()));
  return true;
}

}  // namespace

std::optional<SlotMap> SlotMap::parse(const redisReply& reply, const Address& asked) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements > kSlots) return std::nullopt;
  SlotMap map;
  for (std::size_t i = 0; i < reply.elements; ++i) {
    if (!take_range(*reply.element[i], asked, map)) return std::nullopt;
  }
  return map;
}

std::string explain_map_error(std::string_view error) {
  if (error.starts_with("ERR This instance has cluster")) return advised(one_line(error), kIsNoCluster);
  if (error.starts_with("ERR unknown")) return advised(one_line(error), kKnowsNoCluster);
  const Failure kind = classify_error(error);
  return kind == Failure::not_authenticated || kind == Failure::no_permission ? error_detail(kind, error)
                                                                              : one_line(error);
}

void SlotsClient::ask(std::string& out) {
  asked_at_ = now();
  ask_at_ = kNoWakeup;
  append_command(out, 2);
  append_bulk(out, "CLUSTER");
  append_bulk(out, "SLOTS");
}

bool SlotsClient::heard(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_ERROR) {
    say(explain_map_error(text_of(reply)));
    return false;
  }
  auto map = SlotMap::parse(reply, server());
  if (!map || map->masters.empty()) {
    say(map ? "it knows no master that has slots" : "an answer of unknown shape");
    return false;
  }
  satisfied();
  std::vector<Address> servers = map->masters;
  servers.insert(servers.end(), seeds_.begin(), seeds_.end());
  for (auto i = servers.begin(); i != servers.end();) {
    i = std::find(servers.begin(), i, *i) != i ? servers.erase(i) : i + 1;
  }
  set_servers(std::move(servers));
  owner_.map_loaded(*std::move(map));
  answers_ = is_troubled_ ? answers_ + 1 : 0;
  const std::int64_t soon =
      std::clamp(kAnswerTimes * (now() - asked_at_), kLeastTroubledInterval, kMostTroubledInterval);
  ask_at_ = std::min(ask_at_, now() + jitter().spread(is_troubled_ ? soon : kUsualInterval));
  return true;
}

void SlotsClient::refresh(std::int64_t now) {
  // An answer that is on its way may have been given too early.
  ask_at_ = std::min(ask_at_, std::max(now, asked_at_ + kLeastInterval));
}

void SlotsClient::flush(std::int64_t now) {
  Guide::flush(now);
  if (!is_satisfied() || ask_at_ > now) return;
  if (answers_ >= kMostFruitless) {
    answers_ = 0;
    go_on();
  } else {
    ask_again();
  }
}

std::int64_t SlotsClient::next_wakeup() const {
  return is_satisfied() ? std::min(Guide::next_wakeup(), ask_at_) : Guide::next_wakeup();
}

}  // namespace sluice::store::redis
