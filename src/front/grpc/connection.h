// One gRPC connection without its socket: bytes in, bytes out, on nghttp2.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "front/grpc/flood_guard.h"
#include "front/grpc/frame_room.h"
#include "front/grpc/frame_tally.h"
#include "front/grpc/grpc_options.h"
#include "front/grpc/recent_ids.h"
#include "front/grpc/service.h"
#include "front/grpc/status.h"
#include "front/grpc/stream.h"
#include "sluice/clock.h"

namespace sluice::front::grpc {

/// The server's end of an HTTP/2 connection that carries gRPC calls: those of RateLimitService and Limiter, which are
/// unary, health and reflection. Calls that
/// the store answers on the spot are answered within feed(); others later, and the owner hears of it. Everything that
/// goes wrong is answered on the stream or ends the connection by GOAWAY; nothing throws. Not thread-safe.
class Connection {
 public:
  class Owner {
   public:
    /// There is output, and it did not come from a call of the owner's. Not repeated before the next take_output().
    virtual void output_ready() = 0;

   protected:
    ~Owner() = default;
  };

  /// All references must outlive the connection. Its first output is the server's SETTINGS. `is_certified`: the client
  /// has shown a certificate that is trusted.
  Connection(Owner& owner, Service& service, const GrpcOptions& options, Time now, bool is_certified = false);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Takes what was read. `now` is the time of all calls in it. False: nothing more is to be read from this peer.
  [[nodiscard]] bool feed(std::span<const std::uint8_t> bytes, Time now);
  /// Appends frames to `out` until there are no more or it holds `limit` bytes (the last frame may go beyond).
  void take_output(std::string& out, std::size_t limit);
  /// All is said and done: close when the output has been sent.
  [[nodiscard]] bool finished() const;

  /// No new calls: tells the peer by GOAWAY, in two steps so that no call on its way is lost.
  void drain(Time now);
  /// When expire() has something to do (steady ns).
  [[nodiscard]] std::int64_t next_deadline() const;
  /// Ends calls and waits whose time is over.
  void expire(Time now);
  /// Withdraws all calls. After that the connection may only be destroyed.
  void abandon();
  [[nodiscard]] std::size_t open_calls() const { return open_.size(); }

 private:
  friend class Stream;
  struct Callbacks;
  struct SessionDeleter {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };

  // What nghttp2 tells. The integers are its return codes.
  int on_begin_frame(const nghttp2_frame_hd& head);
  int on_begin_headers(const nghttp2_frame& frame);
  int on_header(const nghttp2_frame& frame, std::string_view name, std::string_view value);
  int on_data(std::int32_t id, std::string_view bytes);
  int on_frame(const nghttp2_frame& frame);
  int on_invalid_frame(const nghttp2_frame& frame);
  void on_close(std::int32_t id);
  ssize_t read_body(Stream& stream, std::span<std::uint8_t> room, std::uint32_t& flags);

  [[nodiscard]] Stream* find(std::int32_t id);
  [[nodiscard]] bool asks_for_token(const Stream& stream) const;
  bool judge_head(Stream& stream);
  void dispatch(Stream& stream);
  void should_rate_limit(Stream& stream, std::string_view message);
  void limit(Stream& stream, std::string_view message);
  void begun(Stream& stream, store::Progress progress);
  void health_check(Stream& stream, std::string_view message);

  // Spans of decisions, where there is a tracer.
  void take_trace_field(Stream& stream, std::string_view name, std::string_view value) const;
  void begin_span(Stream& stream, const Request& request) const;
  void end_span(Stream& stream, StatusCode code);
  void call_answered(Stream& stream);

  // Calls with several messages.
  void begin_stream(Stream& stream);
  void say(Stream& stream, std::string_view message);
  void end_stream(Stream& stream);
  void watch_health(Stream& stream, std::string_view message);
  void tell_watchers();
  void end_watches();
  void read_reflection(Stream& stream);
  [[nodiscard]] bool is_serving() const;

  void respond(Stream& stream);
  [[nodiscard]] bool hold_back(Stream& stream);
  void end_holds();
  [[nodiscard]] bool respond_problem(Stream& stream, limiter::Answer::Problem problem);
  void respond_decision(Stream& stream);
  void respond_error(Stream& stream, StatusCode code, std::string_view message, bool name_encodings = false);
  void respond_http(Stream& stream, std::string_view status, std::string_view text);
  void submit(Stream& stream, std::span<const nghttp2_nv> fields, bool with_body);
  int fail(std::uint32_t error);
  void finish_drain();
  void end(std::uint32_t error);
  bool bears_frames();
  void release_buffered(Stream& stream);

  Owner& owner_;
  Service& service_;
  const GrpcOptions& options_;
  SessionMemory memory_;
  std::unique_ptr<nghttp2_session, SessionDeleter> session_;
  const bool is_certified_;
  Time now_;  ///< of the present turn

  StreamList open_;                  ///< in order of their beginning; unary
  StreamList streaming_;             ///< those with several messages
  Stream* last_ = nullptr;           ///< the stream found last
  std::vector<std::int32_t> early_;  ///< answered before the client had sent everything
  std::size_t buffered_ = 0;
  std::size_t waiting_ = 0;  ///< bytes of answers that nghttp2 has not taken
  std::size_t held_up_ = 0;  ///< as many of them had waited when the present turn began
  std::size_t header_block_ = 0;
  std::int32_t newest_id_ = 0;  ///< of the client's streams
  RecentIds ended_{32};         ///< closed, after the client had said that it was done
  RecentIds abandoned_{1024};   ///< closed by this end; the client may not know yet
  FrameTally tally_;            ///< of what is being fed
  std::int64_t call_data_ = 0;  ///< DATA frames among it that brought a call on
  FloodGuard control_frames_;
  FloodGuard resets_;

  enum class Drain : std::uint8_t { no, announced, done };
  Drain drain_ = Drain::no;
  bool in_turn_ = false;    ///< the owner will ask for output anyway
  bool announced_ = false;  ///< the owner knows that there is output
  bool dead_ = false;
  bool greeted_ = false;                    ///< the client's SETTINGS have come
  std::int64_t earliest_call_ = INT64_MAX;  ///< no pending call's deadline is earlier
  std::int64_t earliest_hold_ = INT64_MAX;  ///< no answer that is held back is due earlier
  std::int64_t drain_deadline_ = INT64_MAX;
  std::int64_t next_look_ = INT64_MAX;  ///< at the health that is watched
  std::int64_t born_ = 0;
  std::int64_t last_call_ = 0;  ///< when a call began or ended
};

}  // namespace sluice::front::grpc
