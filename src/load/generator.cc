#include "load/generator.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace sluice::load {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr int kMostInATurn = 256;  // so that others of the loop get theirs
constexpr std::size_t kMostErrors = 20;
constexpr double kSecond = 1e9;

Time read_clock() { return SystemClock().now(); }

std::chrono::steady_clock::time_point point(std::int64_t steady) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(steady));
}

}  // namespace

Generator::Generator(asio::io_context& io, GeneratorOptions options, Traffic& traffic, Checker* checker,
                     FindKeys find_keys)
    : io_(io),
      options_(std::move(options)),
      traffic_(traffic),
      checker_(checker),
      find_keys_(std::move(find_keys)),
      plan_timer_(io),
      end_timer_(io) {}

Generator::~Generator() = default;

std::optional<Error> Generator::run() {
  end_timer_.expires_after(options_.patience);
  end_timer_.async_wait([this](error_code error) {
    if (error || state_ != State::connecting) return;
    problem_ = Error{"no connection within the patience"};
    finish();
  });
  for (const auto& lane : lanes_) lane->start();
  while (state_ != State::over && io_.run_one() > 0) continue;
  return problem_;
}

std::chrono::nanoseconds Generator::elapsed() const {
  return std::chrono::nanoseconds(has_begun() ? read_clock().steady - begin_ : 0);
}

void Generator::lane_ready() {
  if (state_ != State::connecting) {
    pump_soon();
    return;
  }
  if (++lanes_up_ == lanes_.size()) begin();
}

void Generator::lane_lost(const std::string& why) {
  if (state_ == State::connecting) {
    problem_ = Error{why};
    finish();
  } else if (state_ != State::over) {
    ++totals_.lanes_lost;
    note_error(why);
  }
}

void Generator::begin() {
  state_ = State::asking;
  begin_ = read_clock().steady;
  last_answer_ = begin_;
  if (options_.rate > 0) {
    total_ = static_cast<std::uint64_t>(
        std::max(1.0, options_.rate * static_cast<double>(options_.duration.count()) / kSecond));
  }
  const std::int64_t end = begin_ + options_.duration.count();
  end_timer_.expires_at(point(end));
  end_timer_.async_wait([this, end](error_code error) {
    if (!error) end_asking(end);
  });
  pump_soon();
}

std::int64_t Generator::planned(std::uint64_t number) const {
  return begin_ + static_cast<std::int64_t>(static_cast<double>(number) * (kSecond / options_.rate));
}

void Generator::pump_soon() {
  if (pump_posted_ || state_ != State::asking) return;
  pump_posted_ = true;
  asio::post(io_, [this] {
    pump_posted_ = false;
    pump();
  });
}

Lane* Generator::free_lane() {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = *lanes_[next_lane_];
    next_lane_ = next_lane_ + 1 == lanes_.size() ? 0 : next_lane_ + 1;
    if (lane.has_room()) return &lane;
  }
  return nullptr;
}

void Generator::pump() {
  if (state_ != State::asking || in_pump_) return;
  in_pump_ = true;
  bool goes_on = false;
  const bool is_open_loop = options_.rate > 0;
  const std::int64_t end = begin_ + options_.duration.count();
  for (int i = 0;; ++i) {
    const std::int64_t now = read_clock().steady;
    if (is_open_loop ? totals_.asked == total_ : now >= end) break;
    const std::int64_t when = is_open_loop ? planned(totals_.asked) : now;
    if (when > now) {
      arm(when);
      break;
    }
    Lane* const lane = free_lane();
    if (lane == nullptr) break;  // an answer will call again
    if (i == kMostInATurn) {
      goes_on = true;
      break;
    }
    ask(*lane, when);
  }
  in_pump_ = false;
  if (goes_on) pump_soon();
}

void Generator::arm(std::int64_t when) {
  plan_timer_.expires_at(point(when));
  plan_timer_.async_wait([this](error_code error) {
    if (!error) pump();
  });
}

void Generator::ask(Lane& lane, std::int64_t planned) {
  if (free_.empty()) {
    free_.push_back(static_cast<Ticket>(shots_.size()));
    shots_.emplace_back();
  }
  const Ticket ticket = free_.back();
  free_.pop_back();
  Shot& shot = shots_[ticket];
  shot.planned = planned;
  shot.is_open = true;
  shot.keys.clear();
  const Descriptors& descriptors = traffic_.next();
  if (checker_ != nullptr) find_keys_(descriptors, shot.keys);
  ++totals_.asked;
  ++in_flight_;
  shot.sent = read_clock();
  lane.ask(ticket, options_.domain, descriptors, options_.cost);
}

void Generator::answered(Ticket ticket, const Outcome& outcome) {
  if (state_ == State::over || !shots_[ticket].is_open) return;
  Shot& shot = shots_[ticket];
  shot.is_open = false;
  const Time now = read_clock();
  last_answer_ = now.steady;
  totals_.latency.add(now.steady - shot.planned);
  switch (outcome.how) {
    case Answered::admitted:
      ++totals_.admitted;
      break;
    case Answered::admitted_local:
      ++totals_.admitted_local;
      break;
    case Answered::admitted_blind:
      ++totals_.admitted_blind;
      break;
    case Answered::denied:
      ++totals_.denied;
      break;
    case Answered::denied_blind:
      ++totals_.denied_blind;
      break;
    case Answered::failed:
      ++totals_.failed;
      note_error(outcome.error);
      break;
  }
  if (outcome.names_limit) ++totals_.named_limit;
  if (checker_ != nullptr) {
    for (const Checker::KeyId key : shot.keys) checker_->note(key, options_.cost, shot.sent, now, outcome.how);
  }
  free_.push_back(ticket);
  --in_flight_;
  if (state_ == State::asking) {
    if (!in_pump_) pump_soon();
  } else if (in_flight_ == 0) {
    finish();
  }
}

void Generator::note_error(const std::string& what) {
  const auto at = totals_.errors.find(what);
  if (at != totals_.errors.end()) {
    ++at->second;
  } else {
    ++totals_.errors[totals_.errors.size() < kMostErrors ? what : "others"];
  }
}

void Generator::stop() {
  if (state_ == State::connecting) {
    problem_ = Error{"stopped before it was connected"};
    finish();
  } else if (state_ == State::asking) {
    end_asking(read_clock().steady);
  } else {
    finish();
  }
}

void Generator::end_asking(std::int64_t at) {
  if (state_ != State::asking) return;
  state_ = State::waiting;
  plan_timer_.cancel();
  // What should have been asked by now has waited for as long as anything that was.
  for (std::uint64_t i = totals_.asked; i < total_ && planned(i) < at; ++i) {
    ++totals_.unsent;
    totals_.latency.add(at - planned(i));
  }
  totals_.length = std::chrono::nanoseconds(at - begin_);
  if (in_flight_ == 0) {
    finish();
    return;
  }
  end_timer_.expires_after(options_.patience);
  end_timer_.async_wait([this](error_code error) {
    if (!error) finish();
  });
}

void Generator::finish() {
  if (state_ == State::over) return;
  const std::int64_t now = read_clock().steady;
  for (Shot& shot : shots_) {
    if (!shot.is_open) continue;
    shot.is_open = false;
    ++totals_.failed;
    note_error("no answer");
    totals_.latency.add(now - shot.planned);
    if (checker_ != nullptr) {
      for (const Checker::KeyId key : shot.keys) {
        checker_->note(key, options_.cost, shot.sent, read_clock(), Answered::failed);
      }
    }
  }
  if (begin_ != 0) totals_.length = std::max(totals_.length, std::chrono::nanoseconds(last_answer_ - begin_));
  state_ = State::over;
  plan_timer_.cancel();
  end_timer_.cancel();
  for (const auto& lane : lanes_) lane->stop();
}

}  // namespace sluice::load
