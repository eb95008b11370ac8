// One HTTP/1.1 connection without its socket: bytes in, bytes out, deadlines as values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "front/headers.h"
#include "front/http/check_codec.h"
#include "front/http/error_code.h"
#include "front/http/forward_auth.h"
#include "front/http/http_context.h"
#include "front/http/mappers.h"
#include "front/http/request_batch.h"
#include "front/http/request_reader.h"
#include "front/http/response.h"
#include "front/resp/throttle_limits.h"
#include "front/resp/throttle_step.h"
#include "front/session_host.h"
#include "limiter/call.h"
#include "limiter/verb_call.h"
#include "metrics/metrics.h"
#include "policy/snapshot_holder.h"
#include "queue/desk.h"
#include "queue/message.h"
#include "queue/tickets.h"
#include "sluice/clock.h"
#include "store/store.h"
#include "tracing/span.h"

namespace sluice::http {

/// Buffers that all connections of one thread share, as only one of them works at a time.
struct Scratch {
  RequestBatch batch;
  std::string body;
  front::HeaderList headers;
  DateCache date;
  Mappers mappers;
  resp::ThrottleLimits throttle_limits;
};

/// What a connection works with; all of it is its thread's and outlives it.
struct Environment {
  const HttpContext& context;
  policy::SnapshotReader& policy;
  store::Store& store;
  metrics::Shard& metrics;
  const Clock& clock;
  const bool& draining;
  Scratch& scratch;
  bool is_certified = false;  ///< the peer has shown a certificate that is trusted
};

/// Answers come in the order of their requests. While a store has yet to answer one, those behind it wait unread; so do
/// they while more than `max_unsent` bytes of answers have not been taken. Not thread-safe.
///
/// The owner: feeds what the peer sends while wants_input(), sends output() whenever there is some and reports it by
/// sent(), and ends the connection once finished(). After each of these it looks at deadline().
class HttpConnection final : private limiter::Call::Owner, private limiter::VerbCall::Owner, private resp::Step::Owner {
 public:
  using Host = front::SessionHost;

  /// `peer`: the address of who is connected, or of the client that a balancer tells of; empty: not known.
  HttpConnection(const Environment& environment, Host& host, Time now, std::string peer = {});
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  /// Takes what the peer has sent, of any length. Bytes after the end of the conversation are dropped.
  void feed(std::string_view bytes, Time now);
  /// The peer will send no more. What it has asked completely is still answered.
  void end_of_input(Time now);
  [[nodiscard]] bool wants_input() const;

  [[nodiscard]] std::string_view output() const { return std::string_view(output_).substr(output_sent_); }
  /// The first `count` bytes of output() were taken by the peer; 0: it takes none now.
  void sent(std::size_t count, Time now);

  /// Everything is said and sent: no more output will come. The owner shuts its sending side.
  [[nodiscard]] bool finished() const { return state_ == State::closing && output().empty(); }
  /// finished(), and the peer may be sending still: closing at once could destroy the last answer on its way, so read
  /// on and drop until the peer ends or deadline() has passed.
  [[nodiscard]] bool lingers() const { return lingers_; }

  /// When the answer that is being held back may be said, in steady nanoseconds: expire() then, as exactly as can be.
  /// INT64_MAX: none is. Meanwhile the owner watches whether the peer leaves, and ends the connection if it does.
  [[nodiscard]] std::int64_t held_until() const;

  /// When expire() must be called, in steady nanoseconds; INT64_MAX: never.
  [[nodiscard]] std::int64_t deadline() const;
  /// To be called at or after the deadline. Afterwards the owner sends what output there is and ends if `aborted()`.
  void expire(Time now);
  /// The peer is beyond waiting for: end now, whatever is unsent.
  [[nodiscard]] bool aborted() const { return aborted_; }

  /// Ends with the next answer, which says so, or when the peer is quiet.
  void drain(Time now);

 private:
  enum class State : std::uint8_t { reading, deciding, holding, closing };
  enum class Route : std::uint8_t {
    none,
    check,
    peek,
    acquire,
    reserve,
    verb,
    json,
    authorize,
    admit,
    ticket,
    queues,
    health,
    metrics,
    index,
    extra,
    throttle
  };
  static constexpr std::string_view kTicketPath = "/v1/tickets/";
  /// A request that the desk has yet to answer; the answer may come after the connection has gone.
  struct QueueWait {
    HttpConnection* connection = nullptr;
    queue::Message message;
    std::string ticket;
  };
  struct Reply {
    unsigned status = 200;
    std::string_view content_type;
    std::string_view allow;
    bool no_store = false;
  };

  void answered(limiter::Call& call) override;
  void answered(limiter::VerbCall& call) override;
  void step_done() override;

  void work(Time now);
  void work_on(std::string_view& bytes, Time now);
  void head_read(Time now);
  void enter_phase(Time now);
  /// What was pending has been decided: tells it at the present time, and reads on.
  template <typename Answer>
  void resume(Answer answer) {
    const Time now = environment_.clock.now();
    state_ = State::reading;
    answer(now);
    enter_phase(now);
    work(now);
    host_.resumed();
  }
  void serve(Time now);
  [[nodiscard]] bool is_admitted(Time now) const;
  void serve_decision(Time now);
  void serve_page(Time now);
  void serve_authorize(Time now);
  void serve_health(Time now);
  void serve_extra_page(Time now);
  void serve_throttle(Time now);
  void reply_fault(Time now);
  void reply_bad_request(Time now);
  void answer_throttle(Time now);
  void serve_ticket(Time now);
  void serve_queues(Time now);
  void answer_admit(Time now);
  void admitted(const queue::Admission& admission);
  void ticket_found(bool reached, const std::optional<queue::Ticket>& ticket);
  void ticket_cancelled(bool reached, std::optional<queue::TicketState> before);
  [[nodiscard]] std::shared_ptr<QueueWait> begin_wait();
  void end_wait();
  template <typename Answer>
  void resume_with(Answer answer);
  [[nodiscard]] bool decode(DecodeFault& fault);
  void decide(Time now);
  [[nodiscard]] bool are_sound(Time now);
  [[nodiscard]] Request shaped(Request request) const;
  void prepare(std::size_t index, const Request& request);
  [[nodiscard]] store::Progress run(std::size_t index, const Request& request, Time now);
  void one_answered();
  void answer_decided(Time now);
  // A span of the present request, where there is a tracer.
  void begin_span(std::string_view domain, Time now);
  void describe_span();
  void end_span(unsigned status);
  [[nodiscard]] bool hold_back(Time now);
  void end_hold(Time now);
  void answer_check(Time now);
  void answer_peek(Time now);
  void answer_verb(Time now);
  void answer_json(Time now);
  void answer_authorize(Time now);
  void reply_authorized(Time now);
  void reply_unauthorized(std::string_view message, std::string_view challenge, Time now);
  [[nodiscard]] bool answer_problem(std::size_t index, Time now);
  void reply_items(bool failed, Time now);
  void render_headers(const limiter::Answer& answer);

  [[nodiscard]] limiter::Call& call(std::size_t index);
  [[nodiscard]] limiter::VerbCall& verb_call(std::size_t index);
  void release_calls();

  /// Sends scratch.body as the answer to the present request.
  void reply(const Reply& reply, Time now, std::span<const front::Header> fields = {});
  void reply_error(unsigned status, ErrorCode code, std::string_view message, Time now, std::string_view allow = {});
  /// Notes when output begins to wait for the peer.
  void append_output(std::string_view bytes, Time now);
  void close(bool lingering);

  [[nodiscard]] Route find_route(std::string_view path);

  Environment environment_;
  Host& host_;
  std::string peer_;
  RequestReader reader_;
  std::string input_;  ///< read, not yet used
  std::string output_;
  std::size_t output_sent_ = 0;

  State state_ = State::reading;
  Route route_ = Route::none;
  Form form_ = Form::check;      ///< of the present request, where it is one of Sluice's own JSON
  unsigned allow_status_ = 200;  ///< of the present request, on the route `authorize`
  unsigned deny_status_ = 429;   ///< ″
  bool is_array_ = false;
  bool input_ended_ = false;
  bool lingers_ = false;
  bool drains_ = false;
  bool has_more_ = false;  ///< bytes had come behind the present request
  bool aborted_ = false;
  bool keep_alive_ = true;  ///< after the present request

  std::int64_t held_until_ = 0;  ///< steady; in state `holding`
  limiter::Call call_;
  std::vector<std::unique_ptr<limiter::Call>> more_calls_;      ///< for the second and later requests of an array
  std::vector<std::unique_ptr<limiter::VerbCall>> verb_calls_;  ///< made when they are needed
  std::unique_ptr<resp::ThrottleStep> throttle_;                ///< of POST /throttle, made when it is needed
  std::shared_ptr<QueueWait> wait_;      ///< of the present request, if it may wait in a queue; null: none
  std::unique_ptr<tracing::Span> span_;  ///< of the present request; null: none
  std::size_t calls_ = 0;
  std::size_t pending_ = 0;

  RequestReader::Phase phase_ = RequestReader::Phase::idle;
  std::int64_t phase_since_ = 0;    ///< steady; when the present phase of reading, or closing, began
  std::int64_t drained_since_ = 0;  ///< steady; when draining began
  std::int64_t taken_since_ = 0;    ///< steady; when the peer last took output, or output began to wait
};

}  // namespace sluice::http
