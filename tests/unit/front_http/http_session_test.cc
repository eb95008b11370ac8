// HTTP over real sockets: what only they can show.
#include "front/http/http_session.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <tuple>

#include "base/drain.h"
#include "server/worker.h"
#include "tests/unit/front_http/wire.h"

namespace sluice::http {
namespace {

using boost::asio::ip::tcp;

/// Time that stands still, and is set forward from another thread.
class AtomicClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return {.steady = steady_.load(), .utc = 1'767'225'600'000'000'000}; }
  void advance(std::chrono::nanoseconds by) { steady_ += by.count(); }

 private:
  std::atomic<std::int64_t> steady_{1'000'000'000};
};

/// One worker on its own thread, with one listener.
class HttpSessionTest : public testing::Test {
 protected:
  HttpSessionTest() {
    const std::array<policy::SourceText, 1> texts = {{{"policy.yaml", std::string(kShopPolicy)}}};
    policies_.set(policy::load_texts(texts).policy);
    context_.registry = &registry_;
    auto store = std::make_shared<SlowStore>();
    store_ = store.get();
    worker_.store = std::move(store);
  }

  void start() {
    accept();
    thread_ = std::jthread([this] { worker_.io.run(); });
  }

  void TearDown() override {
    on_worker([this] {
      acceptor_.close();
      while (!worker_.sessions.empty()) {
        worker_.sessions.front().abort();
        worker_.sessions.pop_front();
      }
    });
    thread_.join();  // a loop without work ends by itself
  }

  /// Runs `work` on the worker's thread and waits for it.
  template <typename Work>
  void on_worker(Work work) {
    std::promise<void> done;
    boost::asio::post(worker_.io, [&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  tcp::socket connect() {
    tcp::socket socket(client_io_);
    socket.connect(acceptor_.local_endpoint());
    return socket;
  }

  static void send(tcp::socket& socket, std::string_view bytes) {
    boost::asio::write(socket, boost::asio::buffer(bytes.data(), bytes.size()));
  }

  /// All that comes until the server ends the connection.
  static std::string read_to_end(tcp::socket& socket) {
    std::string all;
    boost::system::error_code error;
    boost::asio::read(socket, boost::asio::dynamic_buffer(all), error);
    return all;
  }

  static Response read_response(tcp::socket& socket) {
    std::string bytes;
    std::array<char, 4096> piece{};
    while (true) {
      bytes.append(piece.data(), socket.read_some(boost::asio::buffer(piece)));
      const std::size_t head = bytes.find("\r\n\r\n");
      if (head == std::string::npos) continue;
      const std::size_t length = bytes.find("Content-Length: ");
      if (bytes.size() == head + 4 + std::stoul(bytes.substr(length + 16))) return parse_response(bytes);
    }
  }

  AtomicClock clock_;
  policy::SnapshotHolder policies_;
  metrics::Registry registry_;
  metrics::Shard& shard_ = registry_.add_shard();
  HttpContext context_;
  server::Worker worker_{policies_, clock_, shard_};
  SlowStore* store_ = nullptr;
  tcp::acceptor acceptor_{worker_.io, {boost::asio::ip::address_v4::loopback(), 0}};
  boost::asio::io_context client_io_;
  std::jthread thread_;

 private:
  void accept() {
    acceptor_.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
      if (error) return;
      socket.non_blocking(true);
      start_http_session(worker_, server::Transport(worker_, std::move(socket)), context_);
      accept();
    });
  }
};

TEST_F(HttpSessionTest, answers_and_keeps_the_connection) {
  start();
  tcp::socket client = connect();
  for (int i = 0; i < 3; ++i) {
    send(client, post("/v1/check", check_body("slow", std::to_string(i))));
    EXPECT_EQ(read_response(client).status, 200);
  }
  send(client, post("/v1/check", check_body("slow", "0")));
  EXPECT_EQ(read_response(client).status, 429);
  on_worker([this] {
    EXPECT_EQ(shard_.value(metrics::Counter::connections_opened), 1U);
    EXPECT_EQ(shard_.value(metrics::Counter::http_requests), 4U);
  });
}

TEST_F(HttpSessionTest, a_half_closed_connection_gets_its_answers) {
  start();
  tcp::socket client = connect();
  std::string requests;
  for (int i = 0; i < 5'000; ++i) requests += get("/healthcheck");
  std::thread sender([&] {
    send(client, requests);
    client.shutdown(tcp::socket::shutdown_send);
  });
  EXPECT_EQ(parse_responses(read_to_end(client)).size(), 5'000U);
  sender.join();
}

TEST_F(HttpSessionTest, the_last_answer_survives_what_is_still_being_sent) {
  start();
  tcp::socket client = connect();
  send(client, "POST /v1/check HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n");
  boost::system::error_code error;
  const std::string piece(10'000, ' ');
  for (int i = 0; i < 100 && !error; ++i) boost::asio::write(client, boost::asio::buffer(piece), error);
  std::ignore = client.shutdown(tcp::socket::shutdown_send, error);
  EXPECT_EQ(parse_response(read_to_end(client)).status, 413);
}

TEST_F(HttpSessionTest, slow_peers_are_dropped) {
  start();
  tcp::socket half = connect();
  send(half, "GET /healthcheck HT");
  tcp::socket idle = connect();
  send(idle, get("/healthcheck"));
  EXPECT_EQ(read_response(idle).status, 200);
  // Its answers are more than the sockets hold, and it takes none.
  tcp::socket deaf = connect();
  deaf.non_blocking(true);
  const std::string request = get("/metrics");
  boost::system::error_code error;
  while (!error) deaf.write_some(boost::asio::buffer(request), error);
  EXPECT_EQ(error, boost::asio::error::would_block);

  const std::jthread time([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      clock_.advance(std::chrono::seconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  EXPECT_EQ(parse_response(read_to_end(half)).status, 408);
  EXPECT_EQ(read_to_end(idle), "");
  bool gone = false;
  while (!gone) on_worker([&] { gone = worker_.sessions.empty(); });
}

TEST_F(HttpSessionTest, answers_that_come_later_are_sent) {
  store_->slow = true;
  start();
  tcp::socket client = connect();
  send(client, post("/v1/check", check_body("slow", "1")) + post("/v1/check", check_body("slow", "1")));
  for (const int status : {200, 429}) {
    bool answered = false;
    while (!answered) {
      on_worker([&] {
        if (store_->waiting.empty()) return;
        store_->answer();
        answered = true;
      });
    }
    EXPECT_EQ(read_response(client).status, status);
  }
}

TEST_F(HttpSessionTest, a_peer_that_goes_takes_its_question_along) {
  store_->slow = true;
  start();
  tcp::socket client = connect();
  send(client, post("/v1/check", check_body("slow", "1")));
  std::size_t waiting = 0;
  while (waiting == 0) on_worker([&] { waiting = store_->waiting.size(); });
  on_worker([this] { worker_.sessions.front().abort(); });
  while (waiting != 0) on_worker([&] { waiting = store_->waiting.size(); });
  EXPECT_EQ(read_to_end(client), "");
}

TEST_F(HttpSessionTest, draining_answers_what_has_begun) {
  store_->slow = true;
  start();
  tcp::socket idle = connect();
  send(idle, get("/healthcheck"));
  EXPECT_EQ(read_response(idle).status, 200);
  tcp::socket again = connect();
  send(again, get("/healthcheck"));
  EXPECT_EQ(read_response(again).status, 200);
  tcp::socket busy = connect();
  send(busy, post("/v1/check", check_body("slow", "1")));
  std::size_t waiting = 0;
  while (waiting == 0) on_worker([&] { waiting = store_->waiting.size(); });
  on_worker([this] {
    worker_.draining = true;
    for (server::Session& session : worker_.sessions) session.drain();
  });
  send(again, get("/healthcheck"));
  EXPECT_EQ(parse_response(read_to_end(again)).field("Connection"), "close");
  clock_.advance(kDrainGrace);
  EXPECT_EQ(read_to_end(idle), "");
  on_worker([this] { store_->answer(); });
  const Response last = parse_response(read_to_end(busy));
  EXPECT_EQ(last.status, 200);
  EXPECT_EQ(last.field("Connection"), "close");
}

}  // namespace
}  // namespace sluice::http
