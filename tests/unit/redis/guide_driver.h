// Drives a guide as a session would, without a socket: time is what a test says it is, servers are what it feeds.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "store/redis/guide.h"

namespace sluice::store::redis::testing {

inline constexpr std::int64_t kMs = 1'000'000;

/// A command in the Redis protocol.
inline std::string command(std::initializer_list<std::string_view> words) {
  std::string out = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    out += "$" + std::to_string(word.size()) + "\r\n" + std::string(word) + "\r\n";
  }
  return out;
}

class GuideDriver {
 public:
  explicit GuideDriver(Guide& guide) : guide_(guide) {}

  /// Carries out the wish for a connection; where it was made to, nothing when none was wished.
  std::optional<Address> connect() {
    const auto address = dial();
    if (address) guide_.connected(now);
    return address;
  }
  /// The same, but the server cannot be reached.
  std::optional<Address> fail_to_connect(std::string_view why = {}) {
    const auto address = dial();
    if (address) guide_.closed(now, why);
    return address;
  }
  std::string take_output() { return std::exchange(guide_.output(), {}); }
  void receive(std::string_view bytes) {
    guide_.received(bytes, now);
    pump();
  }
  void lose() {
    guide_.closed(now, {});
    pump();
  }
  void advance(std::int64_t by) {
    now += by;
    if (guide_.next_wakeup() <= now) guide_.wake(now);
    pump();
  }
  void pump() {
    if (guide_.wish() == Machine::Wish::disconnect) guide_.finish_disconnect();
    guide_.flush(now);
  }
  /// How long until it wants to be woken.
  [[nodiscard]] std::int64_t wait() const { return guide_.next_wakeup() - now; }

  std::int64_t now = 1'000'000'000'000;

 private:
  std::optional<Address> dial() {
    if (guide_.wish() != Machine::Wish::connect) return std::nullopt;
    guide_.begin_connect(now);
    std::optional<Address> to;
    guide_.locate([&](const std::optional<Address>& address, std::string_view) { to = address; });
    return to;
  }
  Guide& guide_;
};

}  // namespace sluice::store::redis::testing
