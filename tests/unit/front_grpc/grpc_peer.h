// A gRPC connection under test and a client at its other end, without sockets: nghttp2 on both sides.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "front/grpc/connection.h"
#include "front/grpc/service.h"
#include "metrics/metrics.h"
#include "policy/policy.h"
#include "store/memory/memory_store.h"

namespace sluice::front::grpc::testing_support {

using Fields = std::vector<std::pair<std::string, std::string>>;

/// What the client was told on one stream.
struct Response {
  std::map<std::string, std::string> head;
  std::map<std::string, std::string> trailers;
  std::string body;
  bool ended = false;       ///< the server's END_STREAM has come
  bool closed = false;      ///< the stream is gone
  std::uint32_t reset = 0;  ///< error code of an RST_STREAM
  bool was_reset = false;
  /// grpc-status, whether after a message or alone; -1: none.
  [[nodiscard]] int status() const;
  [[nodiscard]] std::string message() const;
};

/// Answers when told to. Charges are allowed with limit 30 and remaining 29.
class HeldStore final : public store::Store {
 public:
  store::Progress check(store::Check& check, Time now) override;
  void cancel(store::Check& check) override;
  [[nodiscard]] bool ready() const override { return is_ready; }
  void answer_all();

  std::vector<store::Check*> held;
  int cancelled = 0;
  bool is_ready = true;
};

/// A gRPC message: the five bytes and `message`.
std::string framed(std::string_view message, char flag = 0);
/// A RateLimitRequest for `user`, hits_addend 1.
std::string request_for(std::string_view user, std::string_view domain = "shop");

/// A client's end of a connection, on nghttp2.
class Client {
 public:
  static constexpr std::string_view kShouldRateLimit = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
  static constexpr std::string_view kHealthCheck = "/grpc.health.v1.Health/Check";

  Client();
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Sends a request; its stream id. Without `end` the request is left open.
  std::int32_t send(const Fields& head, std::string body, bool end = true);
  std::int32_t call(std::string_view path, std::string body, const Fields& more = {}, bool end = true);
  /// What the client has to say now.
  std::string client_output();
  void client_input(std::string_view bytes);
  const Response& response(std::int32_t id) { return responses[id]; }

  nghttp2_session* client = nullptr;
  std::map<std::int32_t, Response> responses;
  std::vector<std::uint32_t> goaways;        ///< error codes
  std::vector<std::int32_t> goaway_streams;  ///< last stream ids
  int ping_acks = 0;

 private:
  struct Callbacks;
  struct Body {
    std::string bytes;
    std::size_t sent = 0;
    bool end = true;
  };
  std::map<std::int32_t, Body> bodies_;
  std::string unparsed_;
};

/// A connection under test and its client, with bytes carried by hand.
class Peer final : public Client, public Connection::Owner {
 public:
  static constexpr std::int64_t kSecond = 1'000'000'000;

  /// `policy`: text of a policy file; empty: none is loaded.
  explicit Peer(std::string_view policy = kPolicy, GrpcOptions options = {}, bool is_certified = false);
  void output_ready() override { ++outputs_announced; }

  /// Uses this store in place of a memory store.
  HeldStore& hold();
  /// A whole ShouldRateLimit call, pumped.
  const Response& ask(std::string_view user, const Fields& more = {});
  /// A whole call of any kind, pumped.
  const Response& exchange(std::string_view path, std::string body, const Fields& more = {});
  /// Carries bytes to and fro until both sides are silent.
  void pump();
  /// Bytes that no client session made; the server's answer goes to the client's session.
  bool feed(std::string_view bytes);
  /// What the server has to say now.
  std::string server_output(std::size_t limit = SIZE_MAX);
  [[nodiscard]] std::uint64_t counted(metrics::Counter counter) const { return shard.value(counter); }
  void advance(std::int64_t nanoseconds) {
    now.steady += nanoseconds;
    now.utc += nanoseconds;
  }

  static constexpr std::string_view kPolicy =
      "domain: shop\n"
      "descriptors:\n"
      "  - key: user\n"
      "    rate_limit: { name: ArticleCreate, unit: second, requests_per_unit: 10, algorithm: token_bucket, burst: 30 "
      "}\n";

  GrpcOptions options;
  metrics::Registry registry;
  metrics::Shard& shard;
  policy::SnapshotHolder policies;
  policy::SnapshotReader reader;
  std::shared_ptr<store::Store> store;
  bool draining = false;
  Time now{1'000 * kSecond, 1'767'225'600 * kSecond};
  Service service;
  std::unique_ptr<Connection> connection;
  bool reading = true;  ///< what feed() said last
  int outputs_announced = 0;
};

}  // namespace sluice::front::grpc::testing_support
