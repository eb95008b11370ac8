// One call on a connection, and the pool it comes from.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "front/grpc/limiter_codec.h"
#include "limiter/call.h"
#include "limiter/verb_call.h"
#include "tracing/span.h"
#include "tracing/trace_context.h"

namespace sluice::front::grpc {

class Connection;

/// What the path of a request asks for.
enum class Method : std::uint8_t { none, should_rate_limit, health_check, health_watch, reflection, limiter, unknown };

/// The state of one HTTP/2 stream. Made once and used for many calls, so that its buffers keep their capacity.
class Stream final : public limiter::Call::Owner,
                     public limiter::VerbCall::Owner,
                     public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::safe_link>> {
 public:
  enum class State : std::uint8_t {
    receiving,  ///< the request is not complete
    foreign,    ///< ″, and it is not gRPC: to be refused when it is, its body is of no interest
    pending,    ///< the store will answer
    decided,    ///< the answer is there, and is to be held back
    held,       ///< it waits for its time
    streaming,  ///< answers by several messages, as there are some
    answered,   ///< a response has been handed to nghttp2
  };

  explicit Stream(metrics::Shard& metrics) : call(*this, metrics) {}
  void answered(limiter::Call& call) override;
  void answered(limiter::VerbCall& call) override;
  /// Withdraws what is pending.
  void cancel();
  /// As new, but for capacity.
  void reset();

  limiter::Call call;
  std::unique_ptr<limiter::VerbCall> verb_call;  ///< of Method::limiter, where it is no check
  std::unique_ptr<tracing::TraceFields> trace;   ///< made when the first such field comes, where there is a tracer
  std::unique_ptr<tracing::Span> span;           ///< of the decision; null: it has none
  Connection* connection = nullptr;
  std::int32_t id = 0;
  State state = State::receiving;
  Method method = Method::none;
  LimiterMethod limiter_method = LimiterMethod::check;
  bool is_post = false;
  bool is_head = false;
  bool is_grpc = false;
  bool bad_timeout = false;
  bool has_authorization = false;  ///< such a field, whatever is in it; looked at where a token is asked for
  bool is_ambiguous = false;       ///< ″, several
  bool has_token = false;          ///< it has brought a bearer token; looked at where one is asked for
  bool is_admitted = false;        ///< ″, which is known
  bool is_ending = false;          ///< streaming: no more messages will come
  bool told_serving = false;       ///< health_watch: what the client was told last
  bool has_trailers = false;       ///< the response's body is followed by grpc-status
  bool remote_closed = false;      ///< the client has sent all it will send
  std::int64_t begun = 0;          ///< steady ns
  std::int64_t held_until = 0;     ///< steady ns, in state `held`
  std::int64_t timeout = -1;       ///< grpc-timeout in ns; negative: none
  std::size_t header_size = 0;     ///< as RFC 9113 counts: name + value + 32 each
  std::string request;             ///< frame head and message
  std::string response;            ///< the body
  std::size_t sent = 0;            ///< bytes of `response` that nghttp2 has taken
};

using StreamList = boost::intrusive::list<Stream>;

/// Streams for the connections of one io thread. Not thread-safe.
class StreamPool {
 public:
  explicit StreamPool(metrics::Shard& metrics) : metrics_(metrics) {}
  [[nodiscard]] Stream& take();
  /// Precondition: the stream's call is not pending.
  void give_back(Stream& stream);

 private:
  metrics::Shard& metrics_;
  std::vector<std::unique_ptr<Stream>> free_;
};

}  // namespace sluice::front::grpc
