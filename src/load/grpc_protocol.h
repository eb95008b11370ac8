// RateLimitService/ShouldRateLimit over HTTP/2, as a client.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "load/protocol.h"

struct nghttp2_session;

namespace sluice::load {

/// Appends a RateLimitRequest. A cost of 0 stands in each descriptor, as one of the whole request means 1.
void append_rate_limit_request(std::string& out, std::string_view domain, const Descriptors& descriptors,
                               std::uint64_t cost);
/// Reads a RateLimitResponse.
[[nodiscard]] Outcome read_rate_limit_response(std::string_view message);

/// Any number of calls in flight (the server's limit of streams holds them back). Not thread-safe.
class GrpcProtocol final : public Protocol {
 public:
  /// `owner` must outlive this. `authority`: host and port, for the request's head.
  GrpcProtocol(Owner& owner, std::string authority);
  ~GrpcProtocol() override;
  GrpcProtocol(const GrpcProtocol&) = delete;
  GrpcProtocol& operator=(const GrpcProtocol&) = delete;

  void open() override;
  void ask(Ticket ticket, std::string_view domain, const Descriptors& descriptors, std::uint64_t cost) override;
  [[nodiscard]] bool feed(std::string_view bytes) override;
  [[nodiscard]] std::string& output() override;

 private:
  struct Callbacks;
  struct Call;
  struct Delete {
    void operator()(nghttp2_session* session) const;
  };

  void finish(Call& call);

  Owner& owner_;
  const std::string authority_;
  std::unordered_map<const Call*, std::unique_ptr<Call>> calls_;  ///< whose streams are open
  std::unique_ptr<nghttp2_session, Delete> session_;
  std::string output_;
};

}  // namespace sluice::load
