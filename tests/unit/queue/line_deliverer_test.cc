// Deliveries as lines of JSON.
#include "queue/line_deliverer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace sluice::queue {
namespace {

class LineDelivererTest : public ::testing::Test {
 protected:
  LineDelivererTest() {
    if (::pipe2(ends_.data(), O_NONBLOCK) != 0) ends_ = {-1, -1};
    std::signal(SIGPIPE, SIG_IGN);
  }
  ~LineDelivererTest() override {
    close_reader();
    ::close(ends_[1]);
  }
  LineDelivererTest(const LineDelivererTest&) = delete;
  LineDelivererTest& operator=(const LineDelivererTest&) = delete;

  void close_reader() {
    if (ends_[0] >= 0) ::close(ends_[0]);
    ends_[0] = -1;
  }
  std::string written() const {
    std::array<char, 4096> bytes{};
    const ssize_t size = ::read(ends_[0], bytes.data(), bytes.size());
    return size <= 0 ? std::string() : std::string(bytes.data(), static_cast<std::size_t>(size));
  }
  void start(LineDeliverer& deliverer, const Message& message) {
    deliverer.start({.message = &message, .number = 2, .may_be_duplicate = true},
                    [this](const Outcome& outcome) { outcomes_.push_back(outcome.kind); });
  }

  std::array<int, 2> ends_{};
  std::vector<Outcome::Kind> outcomes_;
};

TEST_F(LineDelivererTest, WritesTogetherWhatIsDueTogether) {
  LineDeliverer deliverer(ends_[1]);
  Message text;
  text.ticket = "a";
  text.key = "k\"1";
  text.headers = {{"A", "1"}, {"B", "\x01"}};
  text.body = "line\n";
  Message bytes;
  bytes.ticket = "b";
  bytes.body = "\xff";
  start(deliverer, text);
  start(deliverer, bytes);
  EXPECT_TRUE(outcomes_.empty()) << "nothing is written yet";
  EXPECT_EQ(written(), "");
  deliverer.flush();
  EXPECT_EQ(outcomes_, std::vector(2, Outcome::Kind::delivered));
  EXPECT_EQ(
      written(),
      "{\"ticket\":\"a\",\"key\":\"k\\\"1\",\"method\":\"POST\",\"path\":\"/\",\"headers\":[[\"A\",\"1\"],[\"B\","
      "\"\\u0001\"]],\"body\":\"line\\u000a\",\"attempt\":2,\"may_be_duplicate\":true}\n"
      "{\"ticket\":\"b\",\"method\":\"POST\",\"path\":\"/\",\"headers\":[],\"body_base64\":\"/w==\",\"attempt\":2,"
      "\"may_be_duplicate\":true}\n");
  deliverer.flush();
  EXPECT_EQ(written(), "");
}

TEST_F(LineDelivererTest, AReaderThatHasGoneEndsItAll) {
  LineDeliverer deliverer(ends_[1]);
  close_reader();
  Message message;
  start(deliverer, message);
  start(deliverer, message);
  deliverer.flush();
  EXPECT_EQ(outcomes_, std::vector(2, Outcome::Kind::broken));
}

TEST_F(LineDelivererTest, AFullDiskIsNoFaultOfTheRequests) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  LineDeliverer deliverer(full);
  Message message;
  start(deliverer, message);
  deliverer.flush();
  ::close(full);
  EXPECT_EQ(outcomes_, std::vector(1, Outcome::Kind::hindered));
}

TEST_F(LineDelivererTest, ALineThatWasCutIsEndedBeforeTheNext) {
  std::string name = ::testing::TempDir() + "lines-XXXXXX";
  const int file = ::mkstemp(name.data());
  ASSERT_GE(file, 0);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, SIG_IGN);
  LineDeliverer deliverer(file);
  Message message;
  message.ticket = "a";
  const rlimit few{.rlim_cur = 10, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &few), 0);
  start(deliverer, message);
  deliverer.flush();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  start(deliverer, message);
  deliverer.flush();
  EXPECT_EQ(outcomes_, (std::vector{Outcome::Kind::hindered, Outcome::Kind::delivered}));
  std::array<char, 4096> bytes{};
  const ssize_t size = ::pread(file, bytes.data(), bytes.size(), 0);
  const std::string text(bytes.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
  EXPECT_TRUE(text.starts_with("{\"ticket\":\n{\"ticket\":\"a\",")) << text;
  ::close(file);
  ::unlink(name.c_str());
}

TEST_F(LineDelivererTest, ASlowReaderIsWaitedFor) {
  LineDeliverer deliverer(ends_[1]);  // which does not block
  Message message;
  message.body.assign(300'000, 'x');  // more than a pipe holds
  start(deliverer, message);
  std::thread reader([this] {
    std::array<char, 65536> bytes{};
    for (std::size_t seen = 0; seen < 300'000;) {
      const ssize_t size = ::read(ends_[0], bytes.data(), bytes.size());
      if (size > 0) seen += static_cast<std::size_t>(size);
      if (size < 0) std::this_thread::yield();
    }
  });
  deliverer.flush();
  EXPECT_EQ(outcomes_, std::vector(1, Outcome::Kind::delivered));
  reader.join();
}

}  // namespace
}  // namespace sluice::queue
