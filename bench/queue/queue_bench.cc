// queue_bench kafka|rabbitmq ROUNDS MESSAGES SLUICE: the driver of bench/queue/run. A JSON line for each measurement.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>

#include "queue/admit_load.h"
#include "queue/bare.h"
#include "queue/rig.h"

namespace sluice::bench {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::size_t kInFlight = 64;
constexpr std::uint64_t kGoalRate = 20'000;
constexpr std::uint64_t kNoLimit = 1'000'000;

/// Measures on a machine at rest.
template <typename Work>
void tell(const std::string& name, const Work& work) {
  wait_for_rest();
  const Loop loop = work();
  std::cout << R"({"name":")" << name << R"(","per_second":)" << loop.per_second << R"(,"p50_ms":)" << loop.p50_ms
            << R"(,"p99_ms":)" << loop.p99_ms << "}" << std::endl;
}

/// `sluice drain --stdout` into a pipe, until `count` lines have come.
Loop drain_to_pipe(const std::string& sluice, const std::filesystem::path& server_file, std::size_t count) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  const pid_t id = ::fork();
  if (id == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::execl(sluice.c_str(), sluice.c_str(), "drain", "--config", server_file.c_str(), "--queue", "orders", "--stdout",
            "--log.level", "warn", nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  std::array<char, 65536> bytes{};
  std::size_t lines = 0;
  Steady::time_point first;
  Steady::time_point last;
  while (lines < count) {
    pollfd readable{.fd = ends[0], .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, 60'000) <= 0) break;
    const ssize_t size = ::read(ends[0], bytes.data(), bytes.size());
    if (size <= 0) break;
    if (lines == 0) first = Steady::now();
    lines += static_cast<std::size_t>(std::count(bytes.begin(), bytes.begin() + size, '\n'));
    last = Steady::now();
  }
  ::kill(id, SIGTERM);
  while (::read(ends[0], bytes.data(), bytes.size()) > 0) {
  }
  ::close(ends[0]);
  ::waitpid(id, nullptr, 0);
  if (lines < count) throw std::runtime_error("drain --stdout wrote only " + std::to_string(lines) + " lines");
  return {.per_second = static_cast<double>(count - 1) / std::chrono::duration<double>(last - first).count()};
}

/// The daemon, killed with the object.
class Daemon {
 public:
  Daemon(const std::string& sluice, const std::filesystem::path& server_file, const std::filesystem::path& log)
      : port_(testing::free_tcp_port()) {
    process_.start({sluice, "serve", "--config", server_file.string(), "--threads", "1", "--listen.grpc", "off",
                    "--listen.admin", "off", "--listen.http", "127.0.0.1:" + std::to_string(port_)},
                   {}, log);
    testing::wait_until_ready(process_, "sluice serve", log, [this] { return testing::answers_tcp(port_); });
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  const std::uint16_t port_;
  testing::ServerProcess process_;
};

void measure(Rig& rig, const std::string& round, const std::string& sluice, std::size_t count) {
  const Load load = make_load(count);
  {
    const config::QueueSettings bare = rig.new_queue("bare" + round);
    Shop(rig, bare, kNoLimit).open();  // makes the queues
    tell("bare produce", [&] { return publish_bare(bare, load, kInFlight); });
    tell("bare consume", [&] { return consume_bare(bare, count); });
  }
  {
    const config::QueueSettings queue = rig.new_queue("lib" + round);
    Shop shop(rig, queue, kNoLimit);
    shop.open();
    tell("admit", [&] { return shop.admit(count, kInFlight); });
    tell("drain to a function, no limit", [&] { return shop.drain(count); });
  }
  {
    const config::QueueSettings queue = rig.new_queue("http" + round);
    Shop(rig, queue, kNoLimit).open();
    {
      const Daemon daemon(sluice, rig.server_file(queue, 100), rig.folder().path() / "daemon.log");
      Shop(rig, queue, kNoLimit).open();
      tell("POST /v1/admit", [&] { return admit_over_http(daemon.port(), count, kInFlight); });
    }
    tell("drain --stdout, no limit", [&] { return drain_to_pipe(sluice, rig.server_file(queue, kNoLimit), count); });
  }
  const config::QueueSettings queue = rig.new_queue("goal" + round);
  Shop shop(rig, queue, kGoalRate);
  shop.open();
  shop.fill(load);
  tell("drain to a function, 20 000/s", [&] { return shop.drain(count); });
  shop.fill(make_load(count));
  tell("drain --stdout, 20 000/s", [&] { return drain_to_pipe(sluice, rig.server_file(queue, kGoalRate), count); });
}

}  // namespace
}  // namespace sluice::bench

int main(int count, char** words) {
  using Kind = sluice::config::QueueSettings::Kind;
  if (count != 5) {
    std::cerr << "usage: queue_bench kafka|rabbitmq ROUNDS MESSAGES SLUICE\n";
    return EXIT_FAILURE;
  }
  try {
    const bool is_kafka = std::string(words[1]) == "kafka";
    sluice::bench::Rig rig(is_kafka ? Kind::kafka : Kind::rabbitmq);
    for (int round = 0; round < std::stoi(words[2]); ++round) {
      sluice::bench::measure(rig, std::to_string(round), words[4], std::stoul(words[3]));
    }
    return EXIT_SUCCESS;
  } catch (const std::exception& problem) {
    std::cerr << "queue_bench: " << problem.what() << '\n';
    return EXIT_FAILURE;
  }
}
