#include "queue/rabbit_publisher.h"

#include <charconv>
#include <optional>
#include <utility>

#include "base/log.h"
#include "queue/spread.h"

namespace sluice::queue::rabbit {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr std::size_t kMostSent = 4096;  ///< not confirmed
constexpr std::size_t kMostWaiting = 100'000;
constexpr auto kWait = 500ms;

}  // namespace

Publisher::Publisher(config::QueueSettings settings) : settings_(std::move(settings)), thread_(settings_, *this) {
  thread_.start();
}

Publisher::~Publisher() { stop(); }

void Publisher::publish(Publish what, Broker::Done done) {
  std::string_view why;
  {
    const std::scoped_lock lock(mutex_);
    if (closing_) {
      why = "the queue is being closed";
    } else if (!up_) {
      why = "the broker is not connected";
    } else if (waiting_.size() >= kMostWaiting) {
      why = "too many requests wait for the broker";
    } else {
      waiting_.push_back({std::move(what), std::move(done), Steady::now() + settings_.timeout});
      if (waiting_.size() == 1) thread_.wake();
      return;
    }
    ++failed_;
  }
  done(false, why);
}

void Publisher::stop() {
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(closing_, true)) return;
  }
  const auto end = Steady::now() + settings_.timeout + 1s;
  while (Steady::now() < end && counts().pending > 0) std::this_thread::sleep_for(10ms);
  thread_.stop();
  lost("the queue is being closed");
}

Publisher::Counts Publisher::counts() const {
  const std::scoped_lock lock(mutex_);
  return {.up = up_,
          .problem = problem_,
          .published = published_,
          .failed = failed_,
          .pending = waiting_.size() + sent_.size()};
}

void Publisher::serve(Link& link) {
  serial_ = 0;
  if (!link.select_confirms()) return;
  {
    const std::scoped_lock lock(mutex_);
    up_ = true;
    problem_.clear();
    if (std::exchange(told_, false)) log::info("queue is ready", {{"queue", settings_.name}});
  }
  while (!thread_.stopping()) {
    if (!send_waiting(link) || !read_confirms(link)) return;
    link.tidy();
    link.wait(kWait);
    thread_.woken();
  }
}

bool Publisher::send_waiting(Link& link) {
  std::optional<Link::Together> together;
  while (true) {
    std::string queue;
    std::string payload;
    std::string reason;
    {
      const std::scoped_lock lock(mutex_);
      if (waiting_.empty() || sent_.size() >= kMostSent) return true;
      if (waiting_.size() > 1 && !together) together.emplace(link);
      Pending pending = std::move(waiting_.front());
      waiting_.pop_front();
      const Publish& what = pending.what;
      queue = what.dead ? settings_.dead_letter : lane_name(settings_, spread_over(what.spread, settings_.lanes));
      payload = std::move(pending.what.payload);
      reason = what.reason;
      sent_.emplace(++serial_, std::move(pending));
    }
    if (!link.publish(queue, serial_, payload, reason)) return false;
    // Confirms must not wait for all to be sent, or the server waits with its own sending.
    if (serial_ % 64 == 0 && !read_confirms(link)) return false;
  }
}

bool Publisher::read_confirms(Link& link) {
  amqp_frame_t frame{};
  while (true) {
    const Link::Event event = link.next(frame);
    if (event == Link::Event::failed) return false;
    if (event == Link::Event::none) return true;
    if (frame.frame_type != AMQP_FRAME_METHOD) continue;
    const amqp_method_t& method = frame.payload.method;
    if (method.id == AMQP_BASIC_ACK_METHOD) {
      const auto* ack = static_cast<const amqp_basic_ack_t*>(method.decoded);
      confirmed(ack->delivery_tag, ack->multiple != 0, true);
    } else if (method.id == AMQP_BASIC_NACK_METHOD) {
      const auto* nack = static_cast<const amqp_basic_nack_t*>(method.decoded);
      confirmed(nack->delivery_tag, nack->multiple != 0, false);
    } else if (method.id == AMQP_BASIC_RETURN_METHOD) {
      amqp_message_t message{};
      if (!link.read_message(message)) return false;
      came_back(message);
      amqp_destroy_message(&message);
    }
  }
}

void Publisher::settle(Pending pending, bool stored, std::string_view why, std::vector<Answer>& answers) {
  ++(stored ? published_ : failed_);
  answers.push_back({std::move(pending.done), stored, std::string(why)});
}

void Publisher::tell(std::vector<Answer>& answers) {
  for (const Answer& answer : answers) answer.done(answer.stored, answer.why);
}

void Publisher::confirmed(std::uint64_t tag, bool multiple, bool stored) {
  std::vector<Answer> answers;
  {
    const std::scoped_lock lock(mutex_);
    auto first = multiple ? sent_.begin() : sent_.find(tag);
    while (first != sent_.end() && first->first <= tag) {
      settle(std::move(first->second), stored, stored ? "" : "the broker has refused it", answers);
      first = sent_.erase(first);
    }
  }
  tell(answers);
}

void Publisher::came_back(const amqp_message_t& message) {
  const amqp_bytes_t& id = message.properties.message_id;
  const auto* text = static_cast<const char*>(id.bytes);
  std::uint64_t serial = 0;
  std::from_chars(text, text + id.len, serial);
  confirmed(serial, false, false);
}

void Publisher::lost(const std::string& why) {
  std::vector<Answer> answers;
  {
    const std::scoped_lock lock(mutex_);
    up_ = false;
    problem_ = why;
    if (!closing_ && !std::exchange(told_, true)) {
      log::warn("queue is not ready", {{"queue", settings_.name}, {"reason", why}});
    }
    for (auto& [serial, pending] : sent_) {
      settle(std::move(pending), false, "the connection to the broker was lost", answers);
    }
    for (Pending& pending : waiting_) settle(std::move(pending), false, "the broker is not connected", answers);
    sent_.clear();
    waiting_.clear();
  }
  tell(answers);
}

void Publisher::tick() {
  std::vector<Answer> answers;
  {
    const std::scoped_lock lock(mutex_);
    const auto now = Steady::now();
    constexpr std::string_view late = "the broker has not confirmed it in time";
    // In order of arrival, so of their deadlines.
    while (!waiting_.empty() && waiting_.front().deadline <= now) {
      settle(std::move(waiting_.front()), false, late, answers);
      waiting_.pop_front();
    }
    while (!sent_.empty() && sent_.begin()->second.deadline <= now) {
      settle(std::move(sent_.begin()->second), false, late, answers);
      sent_.erase(sent_.begin());
    }
  }
  tell(answers);
}

}  // namespace sluice::queue::rabbit
