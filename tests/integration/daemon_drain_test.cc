// A stop under load: whoever has asked is answered.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/integration/support/certificates.h"
#include "tests/integration/support/daemon.h"
#include "tests/integration/support/http_client.h"
#include "tests/integration/support/tls_client.h"

namespace {

using namespace std::chrono_literals;
using sluice::test::connect_to;
using sluice::test::Daemon;
using sluice::test::post_request;
using sluice::test::TempFolder;
using sluice::test::TlsClient;
using sluice::test::TlsClientOptions;
using sluice::testing::Certificates;

const std::string kArticle = SLUICE_SOURCE_DIR "/examples/policies/article.yaml";

/// What became of the requests of all clients of a kind.
struct Tally {
  std::atomic<int> answered{0};
  std::atomic<int> lost{0};         ///< sent whole before it could be known that the connection ends
  std::atomic<int> told_to_end{0};  ///< connections
};

/// A blocking connection, and what has been read of it.
class Line {
 public:
  explicit Line(const std::string& address) : socket_(connect_to(address)) {}
  ~Line() {
    if (socket_ >= 0) ::close(socket_);
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  /// Has the daemon ended the connection, as a client library sees before it sends on one from its pool?
  [[nodiscard]] bool has_ended() const {
    char next = 0;
    return ::recv(socket_, &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }
  [[nodiscard]] bool send(std::string_view text) const {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  /// What comes up to and with the `count`th `mark`; empty: the connection ended before.
  [[nodiscard]] std::string receive(std::string_view mark, int count) {
    std::size_t end = 0;
    while (count > 0) {
      const std::size_t at = read_.find(mark, end);
      if (at != std::string::npos) {
        end = at + mark.size();
        --count;
        continue;
      }
      std::array<char, 4096> bytes{};
      const ssize_t size = ::recv(socket_, bytes.data(), bytes.size(), 0);
      if (size <= 0) return {};
      read_.append(bytes.data(), static_cast<std::size_t>(size));
    }
    std::string text = read_.substr(0, end);
    read_.erase(0, end);
    return text;
  }

 private:
  int socket_;
  std::string read_;
};

void ask_http(const std::string& address, Tally& tally, int pipelined) {
  Line line(address);
  std::string requests;
  for (int i = 0; i < pipelined; ++i) {
    requests += post_request("/v1/check", R"({"domain":"shop","descriptors":[{"user":"42"}],"cost":0})");
  }
  while (line.send(requests)) {
    for (int i = 0; i < pipelined; ++i) {
      const std::string answer = line.receive("]}", 1);
      if (answer.empty()) {
        ++tally.lost;
        return;
      }
      ++tally.answered;
      if (answer.find("Connection: close") == std::string::npos) continue;
      ++tally.told_to_end;
      return;  // what was sent behind it is to be asked again elsewhere
    }
  }
  ++tally.lost;
}

void ask_https(const std::string& address, const TlsClientOptions& options, Tally& tally) {
  TlsClient client(address, options);
  while (client.good()) {
    client.send("GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n");
    const std::string head = client.receive_to("\r\n\r\n");
    const std::size_t at = head.find("Content-Length: ");
    if (at == std::string::npos) break;
    const std::size_t size = std::stoul(head.substr(at + std::string_view("Content-Length: ").size()));
    if (client.receive(size).size() != size) break;
    ++tally.answered;
    if (head.find("Connection: close") == std::string::npos) continue;
    ++tally.told_to_end;
    return;
  }
  ++tally.lost;
}

void ask_resp(const std::string& address, Tally& tally, int pipelined) {
  Line line(address);
  std::string commands;
  for (int i = 0; i < pipelined; ++i) commands += "THROTTLE key 1000 1 1\r\n";
  while (!line.has_ended()) {
    if (!line.send(commands) || line.receive("\r\n", 6 * pipelined).empty()) {
      ++tally.lost;
      return;
    }
    tally.answered += pipelined;
  }
  ++tally.told_to_end;
}

TEST(DaemonDrain, AStopUnderLoadLosesNoRequest) {
  const TempFolder folder;
  const Certificates certificates(folder.path());
  TlsClientOptions tls;
  tls.ca = certificates.ca();
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    Daemon daemon(kArticle, {"--threads", "2", "--listen.resp", "127.0.0.1:0", "--listen.admin.tls.cert",
                             certificates.cert(Certificates::kServer), "--listen.admin.tls.key",
                             certificates.key(Certificates::kServer)});
    ASSERT_TRUE(daemon.ready()) << daemon.process().output();
    const std::string resp = daemon.process().line_after("listening resp ").value_or("");
    const std::string admin = daemon.admin();
    std::array<Tally, 5> tallies;
    std::vector<std::thread> clients;
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back([&] { ask_http(daemon.http(), tallies[0], 1); });
      clients.emplace_back([&] { ask_https(admin, tls, tallies[1]); });
      clients.emplace_back([&] { ask_resp(resp, tallies[2], 1); });
    }
    clients.emplace_back([&] { ask_http(daemon.http(), tallies[3], 4); });
    clients.emplace_back([&] { ask_resp(resp, tallies[4], 4); });
    const auto is_busy = [](const Tally& tally) { return tally.answered > 20 || tally.lost > 0; };
    while (!std::ranges::all_of(tallies, is_busy)) std::this_thread::sleep_for(1ms);
    daemon.process().signal(SIGTERM);
    EXPECT_EQ(daemon.process().wait(), 0);
    for (std::thread& client : clients) client.join();
    for (std::size_t i = 0; i < tallies.size(); ++i) {
      EXPECT_EQ(tallies.at(i).lost, 0) << i;
      EXPECT_EQ(tallies.at(i).told_to_end, i < 3 ? 3 : 1) << i;
    }
  }
}

// A connection that nobody has looked at yet, and one that is quiet.
TEST(DaemonDrain, AFirstRequestIsAnsweredAndAQuietConnectionEnds) {
  Daemon daemon(kArticle, {"--threads", "1", "--listen.resp", "127.0.0.1:0", "--drain_timeout", "1h"});
  ASSERT_TRUE(daemon.ready());
  sluice::test::HttpClient quiet(daemon.http());
  Line quiet_resp(daemon.process().line_after("listening resp ").value_or(""));
  sluice::test::HttpClient first(daemon.http());
  daemon.process().signal(SIGTERM);
  ASSERT_TRUE(daemon.process().has_printed("stopping"));
  // The thread may learn of it a moment after it is told.
  sluice::test::HttpAnswer answer = first.get("/healthcheck");
  while (answer.status == 200) answer = first.get("/healthcheck");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.fields["connection"], "close");
  EXPECT_TRUE(quiet.ended());
  EXPECT_EQ(quiet_resp.receive("\r\n", 1), "");
  EXPECT_EQ(daemon.process().wait(), 0);
}

}  // namespace
