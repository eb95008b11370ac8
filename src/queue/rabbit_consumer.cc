#include "queue/rabbit_consumer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace sluice::queue::rabbit {
namespace {

using namespace std::chrono_literals;

constexpr auto kWait = 500ms;
constexpr std::size_t kMostPrefetch = 65'535;
constexpr int kMostAtOnce = 1000;

}  // namespace

LaneConsumer::LaneConsumer(const config::QueueSettings& settings, const ConsumerOptions& options)
    : settings_(settings), options_(options), thread_(settings_, *this) {
  thread_.start();
}

LaneConsumer::~LaneConsumer() { stop(); }

std::vector<Delivery> LaneConsumer::take(std::size_t most) {
  const std::scoped_lock lock(mutex_);
  std::vector<Delivery> taken;
  while (!arrived_.empty() && taken.size() < most) {
    taken.push_back(std::move(arrived_.front()));
    arrived_.pop_front();
  }
  return taken;
}

bool LaneConsumer::begin(std::uint64_t tag) {
  const std::scoped_lock lock(mutex_);
  return held_.contains(tag);
}

void LaneConsumer::finish(std::uint64_t tag) {
  const std::scoped_lock lock(mutex_);
  const auto held = held_.find(tag);
  if (held == held_.end()) return;
  finished_.push_back(held->second);
  held_.erase(held);
  if (finished_.size() == 1) thread_.wake();
}

void LaneConsumer::stop() { thread_.stop(); }

void LaneConsumer::serve(Link& link) {
  const auto prefetch = std::min({options_.most, static_cast<std::size_t>(settings_.prefetch), kMostPrefetch});
  if (!link.consume(static_cast<std::uint16_t>(prefetch))) return;
  if (std::exchange(told_, false)) log::info("the queue is read again", {{"queue", settings_.name}});
  while (!thread_.stopping()) {
    if (!read_deliveries(link) || !send_acknowledgements(link)) return;
    link.tidy();
    link.wait(kWait);
    thread_.woken();
  }
  (void)send_acknowledgements(link);
}

bool LaneConsumer::read_deliveries(Link& link) {
  bool any = false;
  amqp_frame_t frame{};
  for (int i = 0; i < kMostAtOnce; ++i) {
    const Link::Event event = link.next(frame);
    if (event == Link::Event::failed) return false;
    if (event == Link::Event::none) break;
    if (frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_DELIVER_METHOD) continue;
    const auto* deliver = static_cast<const amqp_basic_deliver_t*>(frame.payload.method.decoded);
    const std::uint64_t number = deliver->delivery_tag;
    const bool redelivered = deliver->redelivered != 0;
    amqp_message_t message{};
    if (!link.read_message(message)) return false;
    std::string payload(static_cast<const char*>(message.body.bytes), message.body.len);
    amqp_destroy_message(&message);
    const std::scoped_lock lock(mutex_);
    held_.emplace(next_tag_, number);
    arrived_.push_back({.tag = next_tag_++, .payload = std::move(payload), .redelivered = redelivered});
    any = true;
  }
  if (any) options_.arrived();
  return true;
}

bool LaneConsumer::send_acknowledgements(Link& link) {
  std::vector<std::uint64_t> numbers;
  std::uint64_t first_held = UINT64_MAX;
  {
    const std::scoped_lock lock(mutex_);
    numbers.swap(finished_);
    // Tags rise as the server's numbers do.
    if (!held_.empty()) first_held = held_.begin()->second;
  }
  if (numbers.empty()) return true;
  std::ranges::sort(numbers);
  // Those before the first that is held are told by one frame.
  const auto single = std::ranges::lower_bound(numbers, first_held);
  if (single != numbers.begin() && !link.acknowledge(*std::prev(single), true)) return false;
  for (auto number = single; number != numbers.end(); ++number) {
    if (!link.acknowledge(*number, false)) return false;
  }
  return true;
}

void LaneConsumer::lost(const std::string& why) {
  if (!thread_.stopping() && !std::exchange(told_, true)) {
    log::warn("the queue cannot be read", {{"queue", settings_.name}, {"reason", why}});
  }
  const std::scoped_lock lock(mutex_);
  arrived_.clear();
  held_.clear();
  finished_.clear();
}

}  // namespace sluice::queue::rabbit
