// Sends spans to a collector by OTLP/HTTP, on a thread of its own.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <thread>

#include "http_client/http_client.h"
#include "http_client/upstream.h"
#include "metrics/metrics.h"
#include "tracing/otlp.h"
#include "tracing/tracer.h"

namespace sluice::tracing {

/// How long things take.
struct ExportTimes {
  std::chrono::nanoseconds gather =
      std::chrono::seconds(1);  ///< from the first span until a batch that is not full goes
  std::chrono::nanoseconds timeout = std::chrono::seconds(10);  ///< until the collector has answered
  std::chrono::nanoseconds pause = std::chrono::seconds(1);     ///< after a failure; each time twice as long
  std::chrono::nanoseconds longest_pause = std::chrono::seconds(30);
  std::chrono::nanoseconds farewell = std::chrono::seconds(2);  ///< for what is left at the end
};

/// One batch at a time. While the collector fails the batch is kept and tried again, after a pause, and spans wait at
/// the tracer up to its bound; what the collector refuses is dropped. Counts what became of spans in `metrics`, which
/// is its own. All must outlive it.
class Exporter {
 public:
  Exporter(Tracer& tracer, const http_client::Upstream& collector, const http_client::TrustPtr& trust, Sender sender,
           metrics::Shard& metrics, ExportTimes times = {});
  /// Sends what is left, if that is soon done.
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

 private:
  enum class State : std::uint8_t { idle, gathering, sending, pausing };

  void spans_wait();
  void gather();
  void next();
  void send();
  void answered(const http_client::Answer& answer);
  void delivered(const http_client::Response& response);
  void refused(const std::string& why);
  void failed(const std::string& why, std::chrono::nanoseconds at_least);
  void stop();
  void after(std::chrono::nanoseconds wait, void (Exporter::*then)());

  Tracer& tracer_;
  const Sender sender_;
  metrics::Shard& metrics_;
  const ExportTimes times_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  boost::asio::steady_timer timer_{io_};
  boost::asio::steady_timer farewell_{io_};
  http_client::HttpClient client_;
  std::minstd_rand random_{std::random_device{}()};
  State state_ = State::idle;
  std::string batch_;           ///< encoded
  std::size_t batch_size_ = 0;  ///< spans; 0: there is none
  unsigned failures_ = 0;       ///< in a row
  bool is_stopping_ = false;
  std::uint64_t turn_ = 0;  ///< of the timer: whoever waited in an earlier one is not called
  std::thread thread_;
};

}  // namespace sluice::tracing
