#include "load/library_lane.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <string>
#include <utility>

namespace sluice::load {

namespace {

constexpr std::chrono::milliseconds kLook{5};
constexpr int kLooks = 400;

Outcome outcome_of(const LimiterAnswer& answer) {
  Outcome outcome;
  outcome.names_limit = !answer.limit.empty();
  switch (answer.problem) {
    case LimiterAnswer::Problem::none:
      break;
    case LimiterAnswer::Problem::stopped:
      outcome.error = "the limiter was stopped";
      return outcome;
    default:
      outcome.error = "a request that cannot be judged";
      return outcome;
  }
  if (!answer.allowed) {
    outcome.how = answer.decision.source == Source::fallback_deny ? Answered::denied_blind : Answered::denied;
  } else if (answer.decision.source == Source::fallback_local) {
    outcome.how = Answered::admitted_local;
  } else if (answer.decision.source == Source::fallback_allow) {
    outcome.how = Answered::admitted_blind;
  } else {
    outcome.how = Answered::admitted;
  }
  return outcome;
}

}  // namespace

// Answers may come when the lane has gone.
struct LibraryLane::Shared {
  explicit Shared(boost::asio::io_context& io) : timer(io) {}
  bool is_stopped = false;
  bool is_up = false;
  int looks = 0;
  std::size_t in_flight = 0;
  boost::asio::steady_timer timer;
};

LibraryLane::LibraryLane(boost::asio::io_context& io, Lane::Owner& owner, Limiter& limiter, bool is_shared,
                         std::size_t most_in_flight)
    : io_(io),
      owner_(owner),
      limiter_(limiter),
      is_shared_(is_shared),
      most_(most_in_flight),
      shared_(std::make_shared<Shared>(io)) {}

// NOLINTNEXTLINE(bugprone-exception-escape): to stop cancels a timer, which does not throw in practice
LibraryLane::~LibraryLane() { stop(); }

void LibraryLane::start() { wait_until_ready(); }

void LibraryLane::wait_until_ready() {
  if (limiter_.ready()) {
    shared_->is_up = true;
    boost::asio::post(io_, [this, shared = shared_] {
      if (!shared->is_stopped) owner_.lane_ready();
    });
    return;
  }
  if (++shared_->looks == kLooks) {
    owner_.lane_lost("no answer from Redis");
    if (shared_->is_stopped) return;
  }
  shared_->timer.expires_after(kLook);
  shared_->timer.async_wait([this, shared = shared_](boost::system::error_code error) {
    if (!error && !shared->is_stopped) wait_until_ready();
  });
}

void LibraryLane::stop() {
  shared_->is_stopped = true;
  shared_->is_up = false;
  shared_->timer.cancel();
}

bool LibraryLane::has_room() const { return shared_->is_up && shared_->in_flight < most_; }

void LibraryLane::ask(Ticket ticket, std::string_view domain, const Descriptors& descriptors, std::uint64_t cost) {
  ++shared_->in_flight;
  LimiterRequest request{.domain = std::string(domain), .descriptors = descriptors, .cost = cost};
  if (!is_shared_) {
    limiter_.start(std::move(request), [this, ticket](const LimiterAnswer& answer) {
      --shared_->in_flight;
      owner_.answered(ticket, outcome_of(answer));
    });
    return;
  }
  limiter_.start(std::move(request), [this, ticket, shared = shared_](const LimiterAnswer& answer) {
    boost::asio::post(io_, [this, ticket, shared, outcome = outcome_of(answer)] {
      if (shared->is_stopped) return;
      --shared->in_flight;
      owner_.answered(ticket, outcome);
    });
  });
}

}  // namespace sluice::load
