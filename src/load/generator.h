// Asks at a fixed rate, or as fast as answers come, and counts what comes back.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "load/checker.h"
#include "load/histogram.h"
#include "load/lane.h"
#include "load/traffic.h"

namespace sluice::load {

struct GeneratorOptions {
  double rate = 0;  ///< requests a second, from first to last evenly spaced; 0: as fast as answers come
  std::chrono::nanoseconds duration = std::chrono::seconds(10);
  std::chrono::nanoseconds patience = std::chrono::seconds(5);  ///< to connect, and for the last answers
  std::string domain;
  std::uint64_t cost = 1;
};

/// What came out so far.
struct Totals {
  std::uint64_t asked = 0;
  std::uint64_t admitted = 0;  ///< by the store, or by whom the answer does not tell
  std::uint64_t admitted_local = 0;
  std::uint64_t admitted_blind = 0;
  std::uint64_t denied = 0;
  std::uint64_t denied_blind = 0;
  std::uint64_t failed = 0;
  std::uint64_t unsent = 0;       ///< planned, but nothing was free to take it until the end
  std::uint64_t named_limit = 0;  ///< answers in which some limit took part
  std::uint64_t lanes_lost = 0;
  std::chrono::nanoseconds length{};  ///< from the first request planned to the last answer
  /// From the time for which a request was planned (open loop) or at which it was sent (closed loop) until its answer;
  /// what was never sent, or never answered, counts with the time that it had waited at the end.
  Histogram latency;
  std::map<std::string, std::uint64_t> errors;  ///< why requests failed; at most 20 kinds
};

/// One thread's: runs on `io`. In an open loop the plan goes on whether answers come or not, so that a target that
/// stalls is seen by all the requests that would have come in the meantime (no coordinated omission).
class Generator final : private Lane::Owner {
 public:
  /// The keys that a request is counted on, appended to `keys`. Called once a request.
  using FindKeys = std::function<void(const Descriptors&, std::vector<Checker::KeyId>& keys)>;

  /// All must outlive the generator. `checker` may be null; `find_keys` is then not called.
  Generator(boost::asio::io_context& io, GeneratorOptions options, Traffic& traffic, Checker* checker,
            FindKeys find_keys);
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  /// As the owner of a lane, for its making.
  [[nodiscard]] Lane::Owner& owner() { return *this; }
  void add(std::unique_ptr<Lane> lane) { lanes_.push_back(std::move(lane)); }

  /// Connects, asks, and waits for the last answers; returns when all is over. Fails when not every lane could be
  /// opened.
  [[nodiscard]] std::optional<Error> run();
  /// From a handler on `io`: no more is asked, and run() returns soon.
  void stop();
  [[nodiscard]] bool has_begun() const { return state_ != State::connecting; }
  [[nodiscard]] std::chrono::nanoseconds elapsed() const;
  [[nodiscard]] const Totals& totals() const { return totals_; }

 private:
  enum class State : std::uint8_t { connecting, asking, waiting, over };
  struct Shot {
    std::int64_t planned = 0;
    Time sent;
    bool is_open = false;
    std::vector<Checker::KeyId> keys;
  };

  void answered(Ticket ticket, const Outcome& outcome) override;
  void lane_ready() override;
  void lane_lost(const std::string& why) override;
  void begin();
  void pump();
  void pump_soon();
  void ask(Lane& lane, std::int64_t planned);
  [[nodiscard]] Lane* free_lane();
  [[nodiscard]] std::int64_t planned(std::uint64_t number) const;
  void arm(std::int64_t when);
  void end_asking(std::int64_t at);
  void finish();
  void note_error(const std::string& what);

  boost::asio::io_context& io_;
  const GeneratorOptions options_;
  Traffic& traffic_;
  Checker* checker_;
  const FindKeys find_keys_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::size_t next_lane_ = 0;
  std::size_t lanes_up_ = 0;
  boost::asio::steady_timer plan_timer_;
  boost::asio::steady_timer end_timer_;
  State state_ = State::connecting;
  std::optional<Error> problem_;
  std::vector<Shot> shots_;
  std::vector<Ticket> free_;
  std::size_t in_flight_ = 0;
  bool pump_posted_ = false;
  bool in_pump_ = false;
  std::int64_t begin_ = 0;
  std::int64_t last_answer_ = 0;
  std::uint64_t total_ = 0;  ///< planned in all; open loop
  Totals totals_;
};

}  // namespace sluice::load
