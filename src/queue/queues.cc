#include "sluice/queues.h"

#include <chrono>
#include <future>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "adapter/render_answer.h"
#include "limiter/redis_options.h"
#include "limiter/wait_for.h"
#include "metrics/metrics.h"
#include "policy/policy.h"
#include "queue/drain_runner.h"
#include "queue/make_broker.h"
#include "queue/overflow_of.h"
#include "queue/queues_impl.h"
#include "queue/tickets.h"
#include "sluice/clock.h"
#include "yaml/tree.h"

namespace sluice {
namespace {

constexpr std::size_t kMostTickets = 1'000'000;
constexpr std::size_t kMostBody = std::size_t{512} << 10U;  ///< below what brokers take at most, by default

std::vector<config::QueueSettings> read_settings(const std::string& text) {
  yaml::Tree tree;
  if (const auto problem = yaml::Tree::parse(text, tree)) {
    throw std::invalid_argument("queues:" + std::to_string(problem->position.line) + ":" +
                                std::to_string(problem->position.column) + ": " + problem->message + "\n");
  }
  config::QueuesText read;
  if (!tree.documents().empty()) read = config::read_queues(*tree.documents().front(), "queues", false);
  std::string problems;
  for (const std::string& error : read.errors) problems += error + "\n";
  if (read.errors.empty() && read.queues.empty()) problems = "queues: there is none\n";
  if (!problems.empty()) throw std::invalid_argument(problems);
  return std::move(read.queues);
}

/// Queues that the policy names and that are not there, a line each.
std::string missing_of(const policy::Policy& policy, const std::vector<config::QueueSettings>& queues) {
  std::string problems;
  for (const policy::Rule* rule : policy.rules()) {
    if (!rule->overflow) continue;
    bool found = false;
    for (const config::QueueSettings& queue : queues) found = found || queue.name == rule->overflow->queue;
    if (!found) problems += rule->label() + ": there is no queue " + rule->overflow->queue + "\n";
  }
  return problems;
}

std::unique_ptr<queue::Tickets> make_tickets(const LimiterOptions& options) {
  if (options.redis_url.empty()) return queue::make_memory_tickets(kMostTickets);
  auto tickets = queue::make_redis_tickets(queue::tickets_options_of(limiter::redis_options(options)));
  if (!tickets) throw std::invalid_argument("redis_url: " + tickets.error().message + "\n");
  return *std::move(tickets);
}

/// What one check on the caller's thread needs.
struct Worker final : limiter::Call::Owner {
  void answered(limiter::Call& /*call*/) override {}
  metrics::Shard metrics;
  limiter::Call call{*this, metrics};
};

queue::Message message_of(WaitingRequest request) {
  queue::Message message;
  message.key = std::move(request.key);
  message.method = std::move(request.method);
  message.path = std::move(request.path);
  message.headers = std::move(request.headers);
  message.body = std::move(request.body);
  message.body_reference = std::move(request.body_reference);
  return message;
}

/// Tells a function what became of a request.
class Told final : public queue::AdmitEnd {
 public:
  explicit Told(Queues::Done done) : done_(std::move(done)) {}

  void decided(limiter::Call* call) override {
    if (call == nullptr) {
      answer_.check.problem = LimiterAnswer::Problem::stopped;
      answer_.kind = Admitted::Kind::denied;
    } else {
      over(call->answer());
      answer_.kind = answer_.check.allowed ? Admitted::Kind::allowed : Admitted::Kind::denied;
    }
    tell();
  }
  void over(const limiter::Answer& answer) override { adapter::show_answer(answer, answer_.check); }
  void admitted(queue::Admission admission) override {
    if (admission.stored) {
      answer_.kind = Admitted::Kind::waiting;
      answer_.ticket = std::move(admission.ticket);
      answer_.place = admission.place;
      answer_.expected = admission.expected;
    } else {
      answer_.kind = Admitted::Kind::denied;
      answer_.problem = admission.code;
      answer_.message = std::move(admission.message);
      answer_.retry_after = admission.retry_after;
    }
    tell();
  }

 private:
  void tell() {
    const Queues::Done done = std::move(done_);
    done(std::move(answer_));
  }
  Queues::Done done_;
  Admitted answer_;
};

std::chrono::system_clock::time_point time_of(std::int64_t us) {
  return std::chrono::system_clock::time_point(std::chrono::microseconds(us));
}

TicketState::Kind kind_of(queue::TicketState state) {
  switch (state) {
    case queue::TicketState::queued:
      return TicketState::Kind::queued;
    case queue::TicketState::running:
      return TicketState::Kind::running;
    case queue::TicketState::done:
      return TicketState::Kind::done;
    case queue::TicketState::failed:
      return TicketState::Kind::failed;
    case queue::TicketState::expired:
      return TicketState::Kind::expired;
    case queue::TicketState::cancelled:
      break;
  }
  return TicketState::Kind::cancelled;
}

[[noreturn]] void throw_unreached() { throw std::runtime_error("the store of tickets cannot be reached"); }

}  // namespace

/// A request on its way through the limits and perhaps into a queue.
class Queues::Impl::Intake final : public limiter::Check {
 public:
  Intake(std::weak_ptr<Impl> queues, std::shared_ptr<const adapter::OwnedRequest> asked, queue::Message message,
         std::shared_ptr<queue::AdmitEnd> end)
      : queues_(std::move(queues)), asked_(std::move(asked)), message_(std::move(message)), end_(std::move(end)) {}

  [[nodiscard]] const Request& request() const override { return asked_->get(); }
  void answered(limiter::Call* call) override {
    const auto queues = queues_.lock();
    const policy::Rule* rule = call == nullptr ? nullptr : queue::overflow_of(call->answer());
    if (rule == nullptr || queues == nullptr) {
      end_->decided(queues == nullptr ? nullptr : call);
      return;
    }
    end_->over(call->answer());
    if (std::string fault = queue::fault_of_request(message_); !fault.empty()) {
      refuse("invalid_request", "the request cannot wait: " + fault);
      return;
    }
    if (message_.body.size() > kMostBody) {
      refuse("too_large", "the request cannot wait: its body is longer than 512 KiB");
      return;
    }
    const Request& asked = asked_->get();
    message_.domain = asked.domain;
    message_.cost = asked.cost;
    for (const Descriptor& descriptor : asked.descriptors) {
      queue::MessageDescriptor& kept = message_.descriptors.emplace_back();
      kept.cost = descriptor.cost;
      for (const Entry& entry : descriptor.entries) kept.entries.emplace_back(entry.key, entry.value);
    }
    message_.group = queue::group_of(message_, call->answer().decision.which);
    queues->desk().admit(*rule, std::move(message_),
                         [end = end_](queue::Admission admission) { end->admitted(std::move(admission)); });
  }

 private:
  void refuse(std::string_view code, std::string message) {
    queue::Admission refused;
    refused.code = code;
    refused.message = std::move(message);
    end_->admitted(std::move(refused));
  }

  const std::weak_ptr<Impl> queues_;
  const std::shared_ptr<const adapter::OwnedRequest> asked_;
  queue::Message message_;
  const std::shared_ptr<queue::AdmitEnd> end_;
};

Queues::Impl::Impl(Limiter& limiter, const QueuesOptions& options)
    : backend_(limiter::Access::backend(limiter)), settings_(read_settings(options.queues)) {
  const auto policy = backend_.policies().get();
  std::string problems = missing_of(*policy, settings_);
  for (config::QueueSettings& queue : settings_) {
    if (queue.kind != config::QueueSettings::Kind::memory && !backend_.is_shared()) {
      problems +=
          "queues." + queue.name + ": its drainers share limits and tickets through Redis: give the limiter one\n";
    }
    config::QueueSettings fitted;
    queue::DrainerOptions ignored;
    queue::fit_to_broker(queue, *policy, fitted, ignored);
    queue = std::move(fitted);
  }
  if (!problems.empty()) throw std::invalid_argument(problems);
  desk_ = std::make_unique<queue::Desk>(make_tickets(backend_.options()));
  for (const config::QueueSettings& queue : settings_) {
    auto broker = queue::make_broker(queue);
    if (!broker) throw std::invalid_argument(broker.error().message + "\n");
    desk_->add(queue, *std::move(broker));
  }
  desk_->start();
}

const config::QueueSettings* Queues::Impl::settings(const std::string& name) const {
  for (const config::QueueSettings& queue : settings_) {
    if (queue.name == name) return &queue;
  }
  return nullptr;
}

Limiter::Pending Queues::Impl::start(std::shared_ptr<const adapter::OwnedRequest> asked, queue::Message message,
                                     std::shared_ptr<queue::AdmitEnd> end) {
  auto intake = std::make_shared<Intake>(weak_from_this(), std::move(asked), std::move(message), std::move(end));
  if (backend_.is_shared()) return backend_.start(std::move(intake));
  const auto worker = std::make_unique<Worker>();
  // The memory store answers at once.
  (void)worker->call.start(intake->request(), backend_.policies().get(), backend_.memory(), SystemClock().now());
  intake->answered(&worker->call);
  return {};
}

Queues::Queues(Limiter& limiter, const QueuesOptions& options) : impl_(std::make_shared<Impl>(limiter, options)) {}

Queues::~Queues() = default;

// NOLINTNEXTLINE(performance-unnecessary-value-param): callers give it away, so that it may be kept
Limiter::Pending Queues::start(LimiterRequest keys, WaitingRequest request, Done done) {
  std::vector<Entry> entries;
  std::vector<Descriptor> descriptors;
  std::size_t count = 0;
  for (const auto& descriptor : keys.descriptors) count += descriptor.size();
  entries.reserve(count);  // spans of it are taken while it grows
  for (const auto& descriptor : keys.descriptors) {
    const std::size_t begin = entries.size();
    for (const auto& [key, value] : descriptor) entries.push_back({.key = key, .value = value});
    descriptors.emplace_back().entries = std::span(entries).subspan(begin);
  }
  return impl_->start(std::make_shared<const adapter::OwnedRequest>(Request{
                          .domain = keys.domain, .descriptors = descriptors, .cost = keys.cost, .peek = keys.peek}),
                      message_of(std::move(request)), std::make_shared<Told>(std::move(done)));
}

Admitted Queues::admit(const LimiterRequest& keys, WaitingRequest request) {
  // Without a time limit there is always an answer.
  return limiter::wait_for<Admitted>(std::nullopt,
                                     [&](Done done) { return start(keys, std::move(request), std::move(done)); })
      .value_or(Admitted());
}

std::optional<TicketState> Queues::ticket(const std::string& id) {
  if (!queue::is_ticket(id)) return std::nullopt;
  std::promise<std::pair<bool, std::optional<queue::Ticket>>> told;
  impl_->desk().ticket(
      id, [&](bool reached, std::optional<queue::Ticket> ticket) { told.set_value({reached, std::move(ticket)}); });
  auto [reached, ticket] = told.get_future().get();
  if (!reached) throw_unreached();
  if (!ticket) return std::nullopt;
  return TicketState{.kind = kind_of(ticket->state),
                     .queue = std::move(ticket->queue),
                     .attempts = ticket->attempts,
                     .status = ticket->status,
                     .place = ticket->place,
                     .created = time_of(ticket->created_us),
                     .expected = time_of(ticket->expected_us),
                     .reason = std::move(ticket->reason)};
}

bool Queues::cancel(const std::string& id) {
  if (!queue::is_ticket(id)) return false;
  std::promise<std::pair<bool, std::optional<queue::TicketState>>> told;
  impl_->desk().cancel(
      id, [&](bool reached, std::optional<queue::TicketState> before) { told.set_value({reached, before}); });
  const auto [reached, before] = told.get_future().get();
  if (!reached) throw_unreached();
  return before == queue::TicketState::queued || before == queue::TicketState::cancelled;
}

std::vector<QueueState> Queues::states() const {
  std::vector<QueueState> states;
  for (queue::QueueFigures& figures : impl_->desk().figures()) {
    states.push_back({.name = std::move(figures.name),
                      .ready = figures.ready,
                      .problem = std::move(figures.problem),
                      .length = figures.length,
                      .stored = figures.stored,
                      .refused = figures.refused,
                      .delivered = figures.drained.delivered});
  }
  return states;
}

}  // namespace sluice
