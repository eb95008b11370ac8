// `sluice drain` with real brokers: by a command, and to a server over TLS whose name must be right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/brokers/queue_fixture.h"
#include "tests/integration/support/certificates.h"

namespace sluice::queue {
namespace {

namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;
using Tcp = boost::asio::ip::tcp;

/// An HTTPS server that calls itself localhost, keeps each request, and answers 200 unless `answer` has other answers
/// by how many have come before. One connection at a time.
class SecureUpstream {
 public:
  using Answer = std::function<http::response<http::string_body>(std::size_t before)>;
  struct Request : http::request<http::string_body> {
    Steady::time_point at;
  };

  explicit SecureUpstream(const testing::Certificates& certificates, Answer answer = nullptr)
      : answer_(std::move(answer)), acceptor_(io_, {boost::asio::ip::address_v4::loopback(), 0}) {
    context_.use_certificate_chain_file(certificates.cert(testing::Certificates::kLocal));
    context_.use_private_key_file(certificates.key(testing::Certificates::kLocal), ssl::context::pem);
    thread_ = std::thread([this] { serve(); });
  }
  SecureUpstream(const SecureUpstream&) = delete;
  SecureUpstream& operator=(const SecureUpstream&) = delete;
  ~SecureUpstream() {
    stopping_ = true;
    Tcp::socket last(io_);
    last.connect(acceptor_.local_endpoint());
    last.close();
    thread_.join();
  }

  [[nodiscard]] std::string url(const std::string& host) const {
    return "https://" + host + ":" + std::to_string(acceptor_.local_endpoint().port()) + "/base";
  }
  std::vector<Request> received() {
    const std::scoped_lock lock(mutex_);
    return received_;
  }

 private:
  void serve() {
    while (!stopping_) {
      ssl::stream<Tcp::socket> stream(io_, context_);
      acceptor_.accept(stream.next_layer());
      error_code error;
      stream.handshake(ssl::stream_base::server, error);
      boost::beast::flat_buffer buffer;
      while (!error) {
        Request request;
        http::read(stream, buffer, request, error);
        if (error) break;
        request.at = Steady::now();
        http::response<http::string_body> answer{http::status::ok, 11};
        if (answer_ != nullptr) answer = answer_(received().size());
        answer.prepare_payload();
        {
          const std::scoped_lock lock(mutex_);
          received_.push_back(request);
        }
        http::write(stream, answer, error);
      }
    }
  }

  const Answer answer_;
  boost::asio::io_context io_;
  ssl::context context_{ssl::context::tls_server};
  Tcp::acceptor acceptor_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<Request> received_;
  std::thread thread_;
};

class QueueDeliverTest : public QueueTest {
 protected:
  std::vector<std::string> command(const TempFolder& folder, const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        test::sluice_binary(), "drain", "--config", server_file(folder), "--queue", "orders", "--pause", "10ms"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static std::string text_of(const std::filesystem::path& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  /// What the ticket says, now or in time.
  std::optional<Ticket> ended(const std::string& id) {
    std::optional<Ticket> found;
    (void)in_time([&] {
      std::promise<std::optional<Ticket>> told;
      desk_->ticket(id, [&](bool, std::optional<Ticket> ticket) { told.set_value(std::move(ticket)); });
      found = told.get_future().get();
      return found && found->state != TicketState::queued && found->state != TicketState::running;
    });
    return found;
  }
};

TEST_P(QueueDeliverTest, ByACommand) {
  open_desk();
  admit(80, 20);
  ASSERT_EQ(refused_, 0);
  const TempFolder folder;
  const std::filesystem::path seen = folder.path() / "seen";
  // The second of each key fails once; that of k7 is refused for ever. A line is appended in one piece.
  const std::string script =
      "body=$(cat); case $body.$SLUICE_ATTEMPT in 1.1) exit 1;; esac; [ \"$SLUICE_KEY$body\" != k71 ] || exit 100; "
      "echo \"$SLUICE_TICKET $SLUICE_KEY $body $SLUICE_MAY_BE_DUPLICATE $SLUICE_PATH\" >>" +
      seen.string();
  Process drainer(command(folder, {"--exec", script, "--in-flight", "8"}));
  const auto lines = [&] {
    const std::string text = text_of(seen);
    return std::ranges::count(text, '\n');
  };
  // Two of each of 40 keys; one is refused.
  EXPECT_TRUE(in_time([&] { return lines() >= 79; }));
  drainer.signal(SIGTERM);
  EXPECT_EQ(drainer.wait(), 0) << drainer.output();
  std::istringstream text(text_of(seen));
  std::map<std::string, int> next;
  std::set<std::string> tickets;
  std::string ticket;
  std::string key;
  int number = 0;
  std::string duplicate;
  std::string path;
  while (text >> ticket >> key >> number >> duplicate >> path) {
    EXPECT_EQ(number, next[key]++) << "of " << key;
    EXPECT_EQ(duplicate, number == 1 ? "true" : "false") << "the second of each key was tried twice";
    EXPECT_EQ(path, "/orders");
    EXPECT_TRUE(tickets.insert(ticket).second);
  }
  EXPECT_EQ(tickets.size(), 79U);
  EXPECT_THAT(drainer.output(), ::testing::HasSubstr("dead=1"));
}

TEST_P(QueueDeliverTest, AReaderThatHasGoneLeavesAllInTheQueue) {
  // More than a pipe holds, so that the reader has gone before all is written, however late it is.
  filler_ = std::string(4'000, ' ');
  open_desk();
  admit(80, 20);
  ASSERT_EQ(refused_, 0);
  const TempFolder folder;
  std::string line;
  for (const std::string& word : command(folder, {"--stdout", "--attempts", "1"})) line += "'" + word + "' ";
  Process first({"/bin/sh", "-c", "{ " + line + "; echo ended with $? >&2; } | head -n 1 >/dev/null"});
  EXPECT_EQ(first.line_after("ended with ", kBrokerPatience), "1") << first.output();
  EXPECT_TRUE(first.has_printed("Broken pipe"));
  const std::string told = first.output();
  EXPECT_THAT(told, ::testing::HasSubstr("dead=0"));
  const std::size_t at = told.find("delivered=");
  ASSERT_NE(at, std::string::npos) << told;
  const int taken = std::atoi(told.c_str() + at + std::string_view("delivered=").size());
  EXPECT_LT(taken, 80);

  const std::filesystem::path seen = folder.path() / "seen";
  Process second({"/bin/sh", "-c", "exec " + line + " >" + seen.string()});
  EXPECT_TRUE(in_time([&] { return std::ranges::count(text_of(seen), '\n') >= 80 - taken; }));
  second.signal(SIGTERM);
  EXPECT_EQ(second.wait(), 0) << second.output();
  const std::string text = text_of(seen);
  EXPECT_EQ(std::ranges::count(text, '\n'), 80 - taken);
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("\"may_be_duplicate\":true"))) << "nobody had begun them";
}

TEST_P(QueueDeliverTest, OverTlsToTheServerOfTheRightName) {
  open_desk();
  admit(20, 20);
  ASSERT_EQ(refused_, 0);
  const TempFolder folder;
  const testing::Certificates certificates(folder.path());
  SecureUpstream upstream(certificates);
  Process drainer(
      command(folder, {"--deliver", upstream.url("localhost"), "--ca", certificates.ca(), "--in-flight", "1"}));
  EXPECT_TRUE(in_time([&] { return upstream.received().size() >= stored_.size(); }));
  drainer.signal(SIGTERM);
  EXPECT_EQ(drainer.wait(), 0) << drainer.output();
  std::set<std::string> keys;
  for (const auto& request : upstream.received()) {
    keys.insert(std::string(request["Idempotency-Key"]));
    EXPECT_EQ(request.target(), "/base/orders");
  }
  EXPECT_EQ(keys, stored_);
}

TEST_P(QueueDeliverTest, WaitsAsTheServerAsksAndCountsTries) {
  open_desk();
  admit(1, 1);
  const TempFolder folder;
  const testing::Certificates certificates(folder.path());
  SecureUpstream upstream(certificates, [](std::size_t before) {
    http::response<http::string_body> answer{before == 0 ? http::status::service_unavailable : http::status::ok, 11};
    if (before == 0) answer.set(http::field::retry_after, "2");
    return answer;
  });
  Process drainer(command(folder, {"--deliver", upstream.url("localhost"), "--ca", certificates.ca()}));
  const auto ticket = ended(*stored_.begin());
  ASSERT_TRUE(ticket);
  EXPECT_EQ(ticket->state, TicketState::done) << drainer.output();
  EXPECT_EQ(ticket->attempts, 2U);
  const auto received = upstream.received();
  ASSERT_EQ(received.size(), 2U);
  EXPECT_GE(received[1].at - received[0].at, 2s) << "though the pause is 10 ms";
  drainer.signal(SIGTERM);
  EXPECT_EQ(drainer.wait(), 0);
}

TEST_P(QueueDeliverTest, NotToAServerThatIsAnother) {
  open_desk();
  admit(1, 1);
  const std::string first = *stored_.begin();
  const TempFolder folder;
  const testing::Certificates certificates(folder.path());
  SecureUpstream upstream(certificates);
  // A trusted certificate of another name.
  {
    Process drainer(
        command(folder, {"--deliver", upstream.url("127.0.0.1"), "--ca", certificates.ca(), "--attempts", "2"}));
    const auto ticket = ended(first);
    ASSERT_TRUE(ticket);
    EXPECT_EQ(ticket->state, TicketState::failed) << drainer.output();
    EXPECT_THAT(ticket->reason, ::testing::HasSubstr("certificate verify failed"));
    drainer.signal(SIGTERM);
    EXPECT_EQ(drainer.wait(), 0);
  }
  // The right name, certified by nobody that is trusted.
  stored_.clear();
  admit(1, 1);
  {
    Process drainer(command(folder, {"--deliver", upstream.url("localhost"), "--ca",
                                     certificates.cert(testing::Certificates::kStranger), "--attempts", "2"}));
    const auto ticket = ended(*stored_.begin());
    ASSERT_TRUE(ticket);
    EXPECT_EQ(ticket->state, TicketState::failed) << drainer.output();
    drainer.signal(SIGTERM);
    EXPECT_EQ(drainer.wait(), 0);
  }
  EXPECT_TRUE(upstream.received().empty());
}

INSTANTIATE_TEST_SUITE_P(Kafka, QueueDeliverTest, ::testing::Values(config::QueueSettings::Kind::kafka));
INSTANTIATE_TEST_SUITE_P(RabbitMQ, QueueDeliverTest, ::testing::Values(config::QueueSettings::Kind::rabbitmq));

}  // namespace
}  // namespace sluice::queue
