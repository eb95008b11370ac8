#include "queue/desk.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <tuple>
#include <utility>

#include "queue/stored_headers.h"

namespace sluice::queue {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Steady = std::chrono::steady_clock;

constexpr milliseconds kLook(500);
constexpr std::size_t kMostRefused = 10'000;  // tickets that are still to be told
constexpr int kRateSpan = 10;                 // looks that rates are measured over
constexpr nanoseconds kLongest = std::chrono::hours(24 * 366);
constexpr nanoseconds kBrokerPause = std::chrono::seconds(5);

std::int64_t utc_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

double per_second(const Limit& limit) {
  const double seconds = std::chrono::duration<double>(limit.period).count();
  return seconds <= 0 ? 0 : static_cast<double>(limit.rate) / seconds;
}

nanoseconds time_for(double count, double rate) {
  if (rate <= 0) return kLongest;
  const double ns = std::ceil(count / rate * 1e9);
  return ns >= static_cast<double>(kLongest.count()) ? kLongest : nanoseconds(static_cast<std::int64_t>(ns));
}

std::string_view type_name(config::QueueSettings::Kind kind) {
  switch (kind) {
    case config::QueueSettings::Kind::kafka:
      return "kafka";
    case config::QueueSettings::Kind::rabbitmq:
      return "rabbitmq";
    case config::QueueSettings::Kind::memory:
      break;
  }
  return "memory";
}

Admission refuse(std::string_view code, std::string message, nanoseconds retry_after) {
  Admission answer;
  answer.code = code;
  answer.message = std::move(message);
  answer.retry_after = std::max<nanoseconds>(retry_after, std::chrono::seconds(1));
  return answer;
}

}  // namespace

struct Desk::Line {
  config::QueueSettings settings;
  std::unique_ptr<Broker> broker;
  std::atomic<std::uint64_t> stored{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> failed{0};

  /// What the keeper has seen, newest last.
  struct Seen {
    Steady::time_point at;
    std::uint64_t stored = 0;
    std::uint64_t delivered = 0;
  };
  mutable std::mutex mutex;
  std::vector<Seen> seen;
  DrainReport report;
  bool has_report = false;

  [[nodiscard]] std::optional<std::uint64_t> length(const BrokerFigures& figures) const {
    if (!figures.length) return std::nullopt;
    const std::scoped_lock lock(mutex);
    return *figures.length + (figures.counts_held ? 0 : report.held);
  }
  /// In and out per second. Under the mutex.
  [[nodiscard]] std::pair<double, double> rates() const {
    if (seen.size() < 2) return {0, 0};
    const double seconds = std::chrono::duration<double>(seen.back().at - seen.front().at).count();
    const auto rate = [&](std::uint64_t first, std::uint64_t last) {
      return seconds <= 0 || last < first ? 0.0 : static_cast<double>(last - first) / seconds;
    };
    return {rate(seen.front().stored, seen.back().stored), rate(seen.front().delivered, seen.back().delivered)};
  }
};

struct Desk::Refused {
  std::string id;
  Ticket ticket;
  milliseconds life{};
  std::int64_t until_us = 0;
};

struct Desk::Intake {
  Line* line = nullptr;
  Message message;
  Answered answered;
  std::uint64_t place = 0;
  nanoseconds expected{};
  milliseconds life{};
  Admission answer;
  std::atomic<int> parts{2};  ///< ticket and broker, that have yet to answer
};

Desk::Desk(std::unique_ptr<Tickets> tickets) : tickets_(std::move(tickets)) {}

Desk::~Desk() { stop(); }

void Desk::add(const config::QueueSettings& settings, std::unique_ptr<Broker> broker) {
  auto line = std::make_unique<Line>();
  line->settings = settings;
  line->broker = std::move(broker);
  lines_.push_back(std::move(line));
}

void Desk::start() {
  keeper_ = std::thread([this] { keep(); });
}

void Desk::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (keeper_.joinable()) keeper_.join();
  for (const auto& line : lines_) line->broker->stop();
}

Desk::Line* Desk::find(std::string_view name) const {
  for (const auto& line : lines_) {
    if (line->settings.name == name) return line.get();
  }
  return nullptr;
}

Broker* Desk::broker(std::string_view queue) const {
  const Line* line = find(queue);
  return line == nullptr ? nullptr : line->broker.get();
}

/// Why the request cannot wait; else its place and time are set.
std::optional<Admission> Desk::refusal(const Line& line, const policy::Overflow& overflow, const Limit& limit,
                                       Intake& intake) {
  const BrokerFigures figures = line.broker->figures();
  const std::string name = "the queue " + line.settings.name;
  if (!figures.up) return refuse("queue_down", name + " cannot be reached: " + figures.problem, kBrokerPause);
  const std::uint64_t waiting = line.length(figures).value_or(0) + figures.pending;
  double rate = per_second(limit);
  std::int64_t oldest_us = 0;
  {
    const std::scoped_lock lock(line.mutex);
    oldest_us = line.report.oldest_us;
    // With a limit for each of many keys a queue empties faster than one of them allows.
    rate = std::max(rate, line.rates().second);
  }
  const std::uint64_t most = std::min<std::uint64_t>(overflow.max_length, figures.most.value_or(overflow.max_length));
  if (waiting >= most) {
    return refuse("queue_full", name + " is full", time_for(static_cast<double>(waiting - most + 1), rate));
  }
  intake.place = waiting + 1;
  intake.expected = time_for(static_cast<double>(intake.place), rate);
  if (intake.expected > overflow.max_age) {
    return refuse("queue_too_slow", name + " would take longer than requests may wait",
                  intake.expected - overflow.max_age);
  }
  const nanoseconds age = oldest_us == 0 ? nanoseconds(0) : std::chrono::microseconds(utc_us() - oldest_us);
  if (age > overflow.max_age) {
    return refuse("queue_too_old", name + " has requests that are older than they may be", age - overflow.max_age);
  }
  return std::nullopt;
}

void Desk::admit(const policy::Rule& rule, Message message, Answered answered) {
  if (!rule.overflow) {
    answered(refuse("queue_down", rule.label() + " names no queue", kBrokerPause));
    return;
  }
  const policy::Overflow& overflow = *rule.overflow;
  Line* line = find(overflow.queue);
  if (line == nullptr) {
    answered(refuse("queue_down", "there is no queue " + overflow.queue, kBrokerPause));
    return;
  }
  auto intake = std::make_shared<Intake>();
  if (auto refused = refusal(*line, overflow, rule.counted.numbers, *intake)) {
    ++line->refused;
    answered(*std::move(refused));
    return;
  }
  const auto max_age_us = std::chrono::duration_cast<std::chrono::microseconds>(overflow.max_age);
  intake->line = line;
  intake->message = std::move(message);
  intake->answered = std::move(answered);
  intake->life = std::chrono::duration_cast<milliseconds>(overflow.max_age) + kTicketAfterlife;
  Message& kept = intake->message;
  kept.ticket = new_ticket();
  kept.created_us = utc_us();
  kept.expires_us = kept.created_us + max_age_us.count();
  drop_unstored(kept.headers, line->settings.stored_headers);
  Ticket ticket;
  ticket.queue = line->settings.name;
  ticket.created_us = kept.created_us;
  ticket.expected_us =
      kept.created_us + std::chrono::duration_cast<std::chrono::microseconds>(intake->expected).count();
  ticket.place = intake->place;
  // Both at once, as each takes its time. A drainer may be quicker than the ticket: then it makes one itself.
  tickets_->create(kept.ticket, std::move(ticket), intake->life, [intake](bool /*reached*/) { settle_part(*intake); });
  publish(intake);
}

/// Ticket or broker has answered; the second of them lets the answer go.
void Desk::settle_part(Intake& intake) {
  if (intake.parts.fetch_sub(1) == 1) intake.answered(std::move(intake.answer));
}

void Desk::publish(const std::shared_ptr<Intake>& intake) {
  const Message& message = intake->message;
  Publish what;
  what.payload = encode(message);
  what.spread = message.group;
  intake->line->broker->publish(std::move(what), [this, intake](bool stored, std::string_view why) {
    if (stored) {
      ++intake->line->stored;
      intake->answer.stored = true;
      intake->answer.ticket = intake->message.ticket;
      intake->answer.place = intake->place;
      intake->answer.expected = intake->expected;
    } else {
      const bool is_full = why == kBrokerFull;  // others were quicker
      ++(is_full ? intake->line->refused : intake->line->failed);
      // It may lie in the broker all the same. The caller is told that it was refused, so it must not be delivered.
      Ticket ticket;
      ticket.queue = intake->line->settings.name;
      ticket.created_us = intake->message.created_us;
      ticket.reason = "not confirmed by the broker";
      refuse_ticket({.id = intake->message.ticket,
                     .ticket = std::move(ticket),
                     .life = intake->life,
                     .until_us = intake->message.expires_us});
      intake->answer = is_full
                           ? refuse("queue_full", "the queue " + intake->line->settings.name + " is full", {})
                           : refuse("queue_down", "the queue " + intake->line->settings.name + ": " + std::string(why),
                                    kBrokerPause);
    }
    settle_part(*intake);
  });
}

void Desk::refuse_ticket(Refused refused) {
  const std::string id = refused.id;
  Ticket ticket = refused.ticket;
  const milliseconds life = refused.life;
  tickets_->refuse(id, std::move(ticket), life,
                   [this, refused = std::move(refused)](bool reached, std::optional<TicketState> /*before*/) {
                     if (reached) return;
                     const std::scoped_lock lock(refused_mutex_);
                     if (refused_.size() == kMostRefused) refused_.erase(refused_.begin());
                     refused_.push_back(refused);
                   });
}

void Desk::cancel(const std::string& id, Tickets::Moved done) {
  tickets_->cancel(id, "cancelled by its client", kTicketAfterlife, std::move(done));
}

void Desk::keep() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    look();
    lock.lock();
    changed_.wait_for(lock, kLook, [this] { return stopping_; });
  }
}

void Desk::look() {
  std::vector<Refused> refused;
  {
    const std::scoped_lock lock(refused_mutex_);
    refused.swap(refused_);
  }
  for (Refused& one : refused) {
    if (one.until_us > utc_us()) refuse_ticket(std::move(one));
  }
  for (const auto& each : lines_) {
    Line* line = each.get();
    tickets_->read_report(line->settings.name, [line](bool reached, const DrainReport& report) {
      const std::scoped_lock lock(line->mutex);
      if (reached) line->report = report;
      line->seen.push_back({Steady::now(), line->stored, line->report.delivered});
      if (line->seen.size() > kRateSpan) line->seen.erase(line->seen.begin());
    });
  }
}

std::vector<QueueFigures> Desk::figures() const {
  std::vector<QueueFigures> all;
  for (const auto& line : lines_) {
    const BrokerFigures broker = line->broker->figures();
    QueueFigures figures;
    figures.name = line->settings.name;
    figures.type = type_name(line->settings.kind);
    figures.ready = broker.up;
    figures.problem = broker.problem;
    figures.length = line->length(broker);
    figures.stored = line->stored;
    figures.refused = line->refused;
    figures.failed = line->failed;
    const std::scoped_lock lock(line->mutex);
    figures.drained = line->report;
    std::tie(figures.rate_in, figures.rate_out) = line->rates();
    if (line->report.oldest_us != 0) {
      figures.oldest = std::chrono::microseconds(std::max<std::int64_t>(utc_us() - line->report.oldest_us, 0));
    }
    if (figures.length && *figures.length == 0) {
      figures.eta = nanoseconds(0);
    } else if (figures.length && figures.rate_out > 0) {
      figures.eta = time_for(static_cast<double>(*figures.length), figures.rate_out);
    }
    all.push_back(std::move(figures));
  }
  return all;
}

void Desk::expose(metrics::TextFormat& text) const {
  const std::vector<QueueFigures> all = figures();
  const auto family = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    text.family(name, type, help);
    for (const QueueFigures& queue : all) {
      if (const std::optional<double> number = value(queue)) text.sample({{"queue", queue.name}}, *number);
    }
  };
  using Number = std::optional<double>;
  const auto seconds = [](const std::optional<nanoseconds>& time) {
    return time ? Number(std::chrono::duration<double>(*time).count()) : Number();
  };
  const auto count = [](std::uint64_t n) { return Number(static_cast<double>(n)); };
  using Queue = const QueueFigures&;
  family("sluice_queue_ready", "gauge", "1 while the broker of a queue can be reached.",
         [](Queue queue) { return Number(queue.ready ? 1 : 0); });
  family("sluice_queue_length", "gauge", "Requests that wait in a queue, those in hand included.",
         [&](Queue queue) { return queue.length ? count(*queue.length) : Number(); });
  family("sluice_queue_in_hand", "gauge", "Requests that drainers have taken and not finished.",
         [&](Queue queue) { return count(queue.drained.held); });
  family("sluice_queue_drainers", "gauge", "Drainers that have told of themselves in the last seconds.",
         [&](Queue queue) { return count(queue.drained.drainers); });
  family("sluice_queue_oldest_seconds", "gauge", "Age of the oldest request that a drainer has in hand.",
         [&](Queue queue) { return seconds(queue.oldest); });
  family("sluice_queue_in_per_second", "gauge", "Requests stored a second by this process, over the last seconds.",
         [](Queue queue) { return Number(queue.rate_in); });
  family("sluice_queue_out_per_second", "gauge", "Requests delivered a second by all drainers, over the last seconds.",
         [](Queue queue) { return Number(queue.rate_out); });
  family("sluice_queue_empty_in_seconds", "gauge", "Time until a queue is empty at its present rate.",
         [&](Queue queue) { return seconds(queue.eta); });
  family("sluice_queue_stored_total", "counter", "Requests that the broker has confirmed.",
         [&](Queue queue) { return count(queue.stored); });
  family("sluice_queue_refused_total", "counter", "Requests refused because a queue was full, too slow or down.",
         [&](Queue queue) { return count(queue.refused); });
  family("sluice_queue_unconfirmed_total", "counter", "Requests refused because the broker did not confirm them.",
         [&](Queue queue) { return count(queue.failed); });
  family("sluice_queue_delivered_total", "counter", "Requests delivered, by all drainers.",
         [&](Queue queue) { return count(queue.drained.delivered); });
  family("sluice_queue_duplicates_total", "counter",
         "Deliveries begun of requests that may have been delivered before, with the same idempotency key.",
         [&](Queue queue) { return count(queue.drained.duplicates); });
  family("sluice_queue_dead_total", "counter", "Requests that could not be delivered and became dead letters.",
         [&](Queue queue) { return count(queue.drained.dead); });
  family("sluice_queue_expired_total", "counter", "Requests dropped because they had waited too long.",
         [&](Queue queue) { return count(queue.drained.expired); });
  family("sluice_queue_foreign_total", "counter", "Messages of other programs that were skipped.",
         [&](Queue queue) { return count(queue.drained.foreign); });
}

}  // namespace sluice::queue
