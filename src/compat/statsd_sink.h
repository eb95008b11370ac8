// Sends statistics to statsd (TCP) or dogstatsd (UDP), by a thread of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "compat/statistics.h"
#include "compat/statsd_text.h"
#include "config/envoy_options.h"

namespace sluice::compat {

/// Sends each `flush_interval`, and once more at its end. What cannot be sent is sent with the next; that is logged
/// once until it works again.
class StatsdSink {
 public:
  /// `read` is called on the sink's thread.
  StatsdSink(const config::EnvoyOptions& options, std::function<Statistics()> read);
  ~StatsdSink();
  StatsdSink(const StatsdSink&) = delete;
  StatsdSink& operator=(const StatsdSink&) = delete;

 private:
  void run();
  void flush();
  [[nodiscard]] bool send_all(const std::vector<std::string>& lines);
  [[nodiscard]] bool connect();
  void disconnect();

  const config::EnvoyOptions& options_;
  std::function<Statistics()> read_;
  StatsdText text_;
  int socket_ = -1;
  bool failing_ = false;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace sluice::compat
