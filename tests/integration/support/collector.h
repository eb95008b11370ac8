// A collector of spans for tests: an HTTP server that takes OTLP.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sluice::test {

/// A span as it came; numbers as text.
struct SeenSpan {
  std::string trace;  ///< in hexadecimal digits, as all ids
  std::string id;
  std::string parent;
  std::string state;
  std::string name;
  std::uint64_t kind = 0;
  std::uint64_t begun = 0;  ///< ns since 1970 UTC
  std::uint64_t ended = 0;
  std::uint64_t flags = 0;
  std::uint64_t status = 0;
  std::map<std::string, std::string> attributes;
};

/// One export.
struct SeenExport {
  std::string head;  ///< method, target and content type
  std::map<std::string, std::string> resource;
  std::string scope;
  std::vector<SeenSpan> spans;
};

/// Reads an ExportTraceServiceRequest; throws what protozero throws, or std::runtime_error for what has no place in it.
[[nodiscard]] SeenExport read_export(std::string_view message);

struct CollectorAnswer {
  unsigned status = 200;
  std::string body{};         // NOLINT(readability-redundant-member-init): gcc warns of initializers that leave it out
  std::string retry_after{};  // NOLINT(readability-redundant-member-init)
};

/// Answers one request after the other, by `answer` of how many have come before; 200 unless given.
class Collector {
 public:
  using Respond = std::function<CollectorAnswer(std::size_t before)>;
  explicit Collector(Respond respond = nullptr);
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  [[nodiscard]] std::string url() const;
  /// What has come: of exports that were answered 200, the spans in their order.
  [[nodiscard]] std::vector<SeenExport> exports() const;
  [[nodiscard]] std::vector<SeenSpan> spans() const;
  /// The spans, once there are so many or it has taken too long.
  [[nodiscard]] std::vector<SeenSpan> wait_for(std::size_t count) const;
  [[nodiscard]] std::size_t requests() const { return requests_; }

 private:
  void serve();

  const Respond respond_;
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> requests_{0};
  std::atomic<int> descriptor_{-1};  ///< of the connection at hand
  mutable std::mutex mutex_;
  std::vector<SeenExport> exports_;
  std::thread thread_;
};

}  // namespace sluice::test
