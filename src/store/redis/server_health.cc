#include "store/redis/server_health.h"

namespace sluice::store::redis {

namespace {

constexpr std::int64_t kQuiet = 1'000'000'000;  // ns

// What does not go away by itself, and which a switch of masters does not bring.
bool is_to_be_mended(Failure reason) {
  return reason == Failure::no_permission || reason == Failure::not_authenticated || reason == Failure::out_of_memory ||
         reason == Failure::server_error;
}

}  // namespace

void ServerHealth::failed(std::uint64_t checks, Failure reason, std::string_view words, std::int64_t now) {
  failed_.fetch_add(checks, std::memory_order_relaxed);
  last_failure_.store(now, std::memory_order_relaxed);
  const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(reason);
  const auto is_old = [&] {
    return is_failing() && (!is_to_be_mended(reason) || (told_.load(std::memory_order_relaxed) & bit) != 0);
  };
  if (is_old()) return;
  const std::scoped_lock lock(mutex_);
  if (is_old()) return;
  told_.fetch_or(bit, std::memory_order_relaxed);
  failing_.store(true, std::memory_order_relaxed);
  trouble_ = to_text(reason);
  if (!words.empty()) trouble_.append(": ").append(words);
  tell_({.change = Change::failing, .reason = reason, .words = words});
}

void ServerHealth::settle(std::int64_t now) {
  if (now - last_failure_.load(std::memory_order_relaxed) >= kQuiet) mended();
}

std::uint64_t ServerHealth::end() {
  failing_.store(false, std::memory_order_relaxed);
  told_.store(0, std::memory_order_relaxed);
  trouble_.clear();
  return failed_.exchange(0, std::memory_order_relaxed);
}

void ServerHealth::mended() {
  if (!is_failing()) return;
  const std::scoped_lock lock(mutex_);
  if (!is_failing()) return;
  tell_({.change = Change::answering, .failed = end()});
}

void ServerHealth::left() {
  const std::scoped_lock lock(mutex_);
  tell_({.change = Change::left, .failed = end()});
}

std::string ServerHealth::trouble() {
  const std::scoped_lock lock(mutex_);
  return trouble_;
}

}  // namespace sluice::store::redis
