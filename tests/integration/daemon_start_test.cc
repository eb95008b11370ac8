// What keeps the real binary from starting: one clear line, and the exit code 1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "tests/integration/support/daemon.h"
#include "tests/integration/support/sanitizers.h"

namespace {

using sluice::test::Ended;
using sluice::test::Process;
using sluice::test::run_sluice;
using sluice::test::sluice_binary;
using testing::HasSubstr;

const std::string kArticle = SLUICE_SOURCE_DIR "/examples/policies/article.yaml";

TEST(DaemonStart, ASocketPathThatIsTooLongIsRefused) {
  const Ended ended = run_sluice({"serve", "--policy", kArticle, "--listen.http", "127.0.0.1:0", "--store.redis.url",
                                  "unix:///" + std::string(199, 'x')});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_EQ(ended.output,
            "sluice: store.redis: Redis URL: the socket's path has 200 bytes, at most 107 are possible\n");
}

// Descriptors for the listeners, but not for every thread.
TEST(DaemonStart, WorkersThatCannotBeMadeEndIt) {
  if (sluice::test::kAddressSanitizer) GTEST_SKIP() << "the sanitizers open descriptors themselves";
  Process process({sluice_binary(), "serve", "--policy", kArticle, "--listen.http", "127.0.0.1:0", "--listen.admin",
                   "off", "--listen.grpc", "off", "--threads", "64"},
                  [] {
                    const rlimit limit{.rlim_cur = 40, .rlim_max = 40};
                    ::setrlimit(RLIMIT_NOFILE, &limit);
                  });
  EXPECT_EQ(process.wait(), 1);
  EXPECT_THAT(process.output(), HasSubstr("sluice: cannot start the io threads: "));
  EXPECT_THAT(process.output(), testing::Not(HasSubstr("listening")));
}

}  // namespace
