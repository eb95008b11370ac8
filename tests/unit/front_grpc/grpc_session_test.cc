// gRPC over real sockets on the loopback.
#include "front/grpc/grpc_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "tests/unit/front_grpc/grpc_peer.h"

namespace sluice::front::grpc {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using metrics::Counter;
using testing::ElementsAre;
using testing_support::Client;
using testing_support::framed;
using testing_support::HeldStore;
using testing_support::Peer;
using testing_support::request_for;
using namespace std::string_literals;

/// A worker with its own thread that serves gRPC on a free port.
class GrpcSession : public testing::Test {
 protected:
  void serve() {
    acceptor_.async_accept([this](error_code error, asio::ip::tcp::socket socket) {
      if (error) return;
      socket.non_blocking(true);
      start_grpc_session(worker_, server::Transport(worker_, std::move(socket)), options_);
      serve();
    });
  }

  void SetUp() override {
    const policy::SourceText text{.name = "policy.yaml", .text = std::string(Peer::kPolicy)};
    policies_.set(policy::load_texts({&text, 1}).policy);
    worker_.store = std::make_shared<store::MemoryStore>(10'000);
  }
  void start() {
    serve();
    thread_ = std::thread([this] { worker_.io.run(); });
  }
  void TearDown() override {
    on_worker([this] {
      acceptor_.close();
      while (!worker_.sessions.empty()) {
        worker_.sessions.front().abort();
        worker_.sessions.pop_front();
      }
    });
    thread_.join();
  }

  /// Runs on the worker's thread, and waits for it.
  template <typename Function>
  void on_worker(Function function) {
    std::promise<void> done;
    asio::post(worker_.io, [&] {
      function();
      done.set_value();
    });
    done.get_future().wait();
  }

  [[nodiscard]] asio::ip::tcp::socket connect(asio::io_context& io) const {
    asio::ip::tcp::socket socket(io);
    socket.connect(acceptor_.local_endpoint());
    return socket;
  }

  /// True as soon as `condition` holds; it is given a generous time to come true.
  template <typename Condition>
  static bool eventually(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < end) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return condition();
  }
  bool closed(std::uint64_t connections) {
    return eventually([&] { return shard_.value(Counter::connections_closed) == connections; });
  }

  GrpcOptions options_;
  SystemClock clock_;
  metrics::Registry registry_;
  metrics::Shard& shard_ = registry_.add_shard();
  policy::SnapshotHolder policies_;
  server::Worker worker_{policies_, clock_, shard_};
  asio::ip::tcp::acceptor acceptor_{worker_.io, {asio::ip::make_address("127.0.0.1"), 0}};
  std::thread thread_;
};

/// A client whose bytes go through a socket.
class SocketClient : public Client {
 public:
  explicit SocketClient(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}

  void flush() { asio::write(socket_, asio::buffer(client_output())); }
  /// Reads once; false: the server has closed.
  bool read() {
    std::array<char, 4096> buffer;
    error_code error;
    const std::size_t size = socket_.read_some(asio::buffer(buffer), error);
    client_input({buffer.data(), size});
    return !error;
  }
  /// Writes and reads until the stream is closed or the connection is.
  void finish(std::int32_t id) {
    do {
      flush();
    } while (!response(id).closed && read());
  }
  /// Reads all until the server closes.
  void read_to_end() {
    do {
      flush_quietly();
    } while (read());
  }
  void flush_quietly() {
    error_code ignored;
    asio::write(socket_, asio::buffer(client_output()), ignored);
  }
  asio::ip::tcp::socket& socket() { return socket_; }

 private:
  asio::ip::tcp::socket socket_;
};

TEST_F(GrpcSession, AnswersCalls) {
  start();
  asio::io_context io;
  SocketClient client(connect(io));
  for (int i = 0; i < 3; ++i) {
    const std::int32_t id = client.call(Client::kShouldRateLimit, framed(request_for("42")));
    client.finish(id);
    EXPECT_EQ(client.response(id).status(), 0);
    EXPECT_EQ(client.response(id).body[6], 1);
  }
  EXPECT_EQ(shard_.value(Counter::connections_opened), 1U);
  EXPECT_EQ(shard_.value(Counter::grpc_requests), 3U);
}

TEST_F(GrpcSession, EndsWithItsClient) {
  start();
  asio::io_context io;
  {
    SocketClient client(connect(io));
    client.finish(client.call(Client::kShouldRateLimit, framed(request_for("42"))));
  }
  EXPECT_TRUE(closed(1));
  bool empty = false;
  on_worker([&] { empty = worker_.sessions.empty(); });
  EXPECT_TRUE(empty);
}

TEST_F(GrpcSession, AnswersThatTheStoreGivesLater) {
  auto held = std::make_shared<HeldStore>();
  worker_.store = held;
  start();
  asio::io_context io;
  SocketClient client(connect(io));
  const std::int32_t first = client.call(Client::kShouldRateLimit, framed(request_for("1")));
  const std::int32_t second = client.call(Client::kShouldRateLimit, framed(request_for("2")));
  client.flush();
  EXPECT_TRUE(eventually([&] {
    std::size_t n = 0;
    on_worker([&] { n = held->held.size(); });
    return n == 2;
  }));
  on_worker([&] { held->answer_all(); });
  client.finish(first);
  client.finish(second);
  EXPECT_EQ(client.response(first).status(), 0);
  EXPECT_EQ(client.response(second).status(), 0);
}

TEST_F(GrpcSession, DeadlineOfACallThatTheStoreDoesNotAnswer) {
  auto held = std::make_shared<HeldStore>();
  worker_.store = held;
  start();
  asio::io_context io;
  SocketClient client(connect(io));
  const std::int32_t id = client.call(Client::kShouldRateLimit, framed(request_for("1")), {{"grpc-timeout", "5m"}});
  client.finish(id);
  EXPECT_EQ(client.response(id).status(), 4);
  EXPECT_EQ(held->cancelled, 1);
}

/// A client that keeps to no limits: it sends calls as long as the socket takes them.
class GreedyClient {
 public:
  explicit GreedyClient(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {
    socket_.non_blocking(true);
    unsent_ = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(NGHTTP2_SETTINGS, 0, 0, "") +
              frame(NGHTTP2_WINDOW_UPDATE, 0, 0, "\x3f\0\0\0"s);
  }
  /// False: the socket takes no more.
  bool call() {
    const std::string head = "\x83\x86\x01\x01\x61\x04"s + static_cast<char>(Client::kShouldRateLimit.size()) +
                             std::string(Client::kShouldRateLimit) +
                             "\x0f\x10\x10"
                             "application/grpc";
    unsent_ += frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, stream_, head) +
               frame(NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, stream_, framed(request_for("1")));
    stream_ += 2;
    ++calls;
    return write();
  }
  bool write() {
    error_code error;
    unsent_.erase(0, socket_.write_some(asio::buffer(unsent_), error));
    return !error;
  }
  /// Reads what is there and sends what is left; false: the server has closed.
  bool read() {
    pollfd readable{.fd = socket_.native_handle(), .events = POLLIN, .revents = 0};
    poll(&readable, 1, 20'000);
    std::array<char, 16'384> buffer;
    error_code error;
    unread_.append(buffer.data(), socket_.read_some(asio::buffer(buffer), error));
    std::size_t at = 0;
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(unread_[at + i]); };
    while (unread_.size() - at >= 9) {
      const std::size_t size = std::size_t{byte(0)} << 16U | std::size_t{byte(1)} << 8U | byte(2);
      if (unread_.size() - at < 9 + size) break;
      if (byte(3) == NGHTTP2_HEADERS && (byte(4) & NGHTTP2_FLAG_END_STREAM) != 0) ++answers;
      at += 9 + size;
    }
    unread_.erase(0, at);
    if (!unsent_.empty()) write();
    return !error;
  }

  std::uint64_t calls = 0;
  std::uint64_t answers = 0;

 private:
  static std::string frame(int type, int flags, std::uint32_t stream, std::string_view payload) {
    std::string out{'\0', static_cast<char>(payload.size() >> 8U), static_cast<char>(payload.size()),
                    static_cast<char>(type), static_cast<char>(flags)};
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(stream >> static_cast<unsigned>(shift));
    return out.append(payload);
  }

  asio::ip::tcp::socket socket_;
  std::uint32_t stream_ = 1;
  std::string unsent_;
  std::string unread_;
};

// A client that sends and does not read: the server stops reading, and loses nothing.
TEST_F(GrpcSession, ReadsNoFasterThanItsAnswersAreTaken) {
  start();
  asio::io_context io;
  GreedyClient client(connect(io));
  while (client.call()) {
  }
  EXPECT_LT(shard_.value(Counter::grpc_requests), client.calls);
  while (client.answers < client.calls) ASSERT_TRUE(client.read());
  EXPECT_EQ(shard_.value(Counter::grpc_requests), client.calls);
  EXPECT_EQ(shard_.value(Counter::protocol_errors), 0U);
}

TEST_F(GrpcSession, PeerThatDoesNotReadIsDropped) {
  options_.write_timeout = std::chrono::milliseconds(20);
  start();
  asio::io_context io;
  GreedyClient client(connect(io));
  // A socket that is full once may be read later: calls are sent on until the server has closed.
  EXPECT_TRUE(eventually([&] {
    while (client.call()) {
    }
    return shard_.value(Counter::connections_closed) == 1;
  }));
}

TEST_F(GrpcSession, IdleClientIsToldAndClosed) {
  options_.idle_timeout = std::chrono::milliseconds(20);
  start();
  asio::io_context io;
  SocketClient client(connect(io));
  const std::int32_t id = client.call(Client::kShouldRateLimit, framed(request_for("1")));
  client.finish(id);
  client.read_to_end();
  EXPECT_EQ(client.response(id).status(), 0);
  EXPECT_THAT(client.goaways, ElementsAre(NGHTTP2_NO_ERROR, NGHTTP2_NO_ERROR));
  client.socket().close();
  EXPECT_TRUE(closed(1));
}

TEST_F(GrpcSession, SilentClientIsDropped) {
  options_.handshake_timeout = std::chrono::milliseconds(20);
  start();
  asio::io_context io;
  asio::ip::tcp::socket socket = connect(io);
  std::string all;
  error_code error;
  asio::read(socket, asio::dynamic_buffer(all), error);
  EXPECT_EQ(error, asio::error::eof);
}

TEST_F(GrpcSession, AnotherProtocolIsClosed) {
  start();
  asio::io_context io;
  asio::ip::tcp::socket socket = connect(io);
  asio::write(socket, asio::buffer(std::string_view("GET / HTTP/1.1\r\nHost: limits\r\n\r\n")));
  std::string all;
  error_code error;
  asio::read(socket, asio::dynamic_buffer(all), error);
  EXPECT_EQ(error, asio::error::eof);
  EXPECT_EQ(shard_.value(Counter::protocol_errors), 1U);
}

TEST_F(GrpcSession, DrainFinishesWhatIsInFlight) {
  auto held = std::make_shared<HeldStore>();
  worker_.store = held;
  start();
  asio::io_context io;
  SocketClient client(connect(io));
  const std::int32_t id = client.call(Client::kShouldRateLimit, framed(request_for("1")));
  client.flush();
  EXPECT_TRUE(eventually([&] {
    std::size_t n = 0;
    on_worker([&] { n = held->held.size(); });
    return n == 1;
  }));
  std::promise<void> drained;
  on_worker([&] {
    worker_.draining = true;
    worker_.on_drained = [&] { drained.set_value(); };
    worker_.sessions.front().drain();
    held->answer_all();
  });
  client.read_to_end();
  EXPECT_EQ(client.response(id).status(), 0);
  EXPECT_THAT(client.goaways, ElementsAre(NGHTTP2_NO_ERROR, NGHTTP2_NO_ERROR));
  client.socket().close();
  drained.get_future().wait();
  EXPECT_EQ(shard_.value(Counter::connections_closed), 1U);
}

TEST_F(GrpcSession, AbortCancelsAndCloses) {
  auto held = std::make_shared<HeldStore>();
  worker_.store = held;
  start();
  asio::io_context io;
  SocketClient client(connect(io));
  client.call(Client::kShouldRateLimit, framed(request_for("1")));
  client.flush();
  EXPECT_TRUE(eventually([&] {
    std::size_t n = 0;
    on_worker([&] { n = held->held.size(); });
    return n == 1;
  }));
  on_worker([&] {
    worker_.sessions.front().abort();
    EXPECT_EQ(held->cancelled, 1);
  });
  client.read_to_end();
  EXPECT_TRUE(closed(1));
}

}  // namespace
}  // namespace sluice::front::grpc
