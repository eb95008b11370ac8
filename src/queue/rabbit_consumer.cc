#include "queue/rabbit_consumer.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "base/log.h"

namespace sluice::queue::rabbit {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kWait = 500ms;
constexpr std::size_t kMostPrefetch = 65'535;
constexpr int kMostAtOnce = 1000;

std::int64_t steady_now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

/// Lanes are named by their numbers.
std::size_t lane_of(const amqp_bytes_t& consumer, std::size_t lanes) {
  const auto* text = static_cast<const char*>(consumer.bytes);
  std::size_t lane = 0;
  std::from_chars(text, text + consumer.len, lane);
  return std::min(lane, lanes - 1);
}

}  // namespace

LaneConsumer::LaneConsumer(config::QueueSettings settings, ConsumerOptions options)
    : settings_(std::move(settings)),
      options_(std::move(options)),
      prefetch_(std::min({options_.most, static_cast<std::size_t>(settings_.prefetch), kMostPrefetch})),
      ledger_(settings_.lanes, std::max<std::size_t>(prefetch_ / 2, 1)),
      thread_(settings_, *this) {
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

bool LaneConsumer::holds(std::uint64_t tag) {
  const std::scoped_lock lock(mutex_);
  return ledger_.holds(tag);
}

bool LaneConsumer::begin(std::uint64_t tag) { return holds(tag); }

void LaneConsumer::finish(std::uint64_t tag) {
  const std::scoped_lock lock(mutex_);
  const std::int64_t before = ledger_.due();
  if (ledger_.finish(tag) && ledger_.due() < before) thread_.wake();
}

void LaneConsumer::stop() { thread_.stop(); }

void LaneConsumer::serve(Link& link) {
  if (!link.consume(static_cast<std::uint16_t>(prefetch_))) return;
  if (std::exchange(told_, false)) log::info("the queue is read again", {{"queue", settings_.name}});
  while (!thread_.stopping()) {
    if (!read_deliveries(link) || !send_acknowledgements(link, steady_now())) return;
    link.tidy();
    link.wait(patience());
    thread_.woken();
  }
  (void)send_acknowledgements(link, AckLedger::kNever);
}

/// How long nothing is to be done, if nothing happens.
std::chrono::milliseconds LaneConsumer::patience() {
  const std::scoped_lock lock(mutex_);
  const std::int64_t due = ledger_.due();
  if (due == AckLedger::kNever) return kWait;
  const std::chrono::nanoseconds left(std::max<std::int64_t>(due - steady_now(), 0));
  return std::min(std::chrono::ceil<std::chrono::milliseconds>(left), kWait);
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
    const std::size_t lane = lane_of(deliver->consumer_tag, settings_.lanes);
    amqp_message_t message{};
    if (!link.read_message(message)) return false;
    std::string payload(static_cast<const char*>(message.body.bytes), message.body.len);
    amqp_destroy_message(&message);
    const std::scoped_lock lock(mutex_);
    arrived_.push_back({.tag = ledger_.add(number, lane), .payload = std::move(payload), .redelivered = redelivered});
    any = true;
  }
  if (any) options_.arrived();
  return true;
}

bool LaneConsumer::send_acknowledgements(Link& link, std::int64_t now) {
  AckLedger::Due due;
  {
    const std::scoped_lock lock(mutex_);
    due = ledger_.take(now);
  }
  if (due.all_up_to == 0 && due.alone.empty()) return true;
  const Link::Together together(link);
  if (due.all_up_to != 0 && !link.acknowledge(due.all_up_to, true)) return false;
  return std::ranges::all_of(due.alone, [&](std::uint64_t number) { return link.acknowledge(number, false); });
}

void LaneConsumer::lost(const std::string& why) {
  if (!thread_.stopping() && !std::exchange(told_, true)) {
    log::warn("the queue cannot be read", {{"queue", settings_.name}, {"reason", why}});
  }
  {
    const std::scoped_lock lock(mutex_);
    arrived_.clear();
    ledger_.clear();
  }
  if (options_.lost) options_.lost();
}

}  // namespace sluice::queue::rabbit
