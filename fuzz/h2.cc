// A whole gRPC connection over a memory store. The input is a list of pieces, each with a byte that says how it comes:
// read at once, after some time, while the output is stuck, or with the server about to drain.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "front/grpc/connection.h"
#include "front/grpc/service.h"
#include "metrics/metrics.h"
#include "policy/policy.h"
#include "store/memory/memory_store.h"

namespace {

using sluice::front::GrpcOptions;
using sluice::front::grpc::Connection;
using sluice::front::grpc::Service;

struct Silent final : Connection::Owner {
  void output_ready() override {}
};

/// Everything that outlives a connection.
struct Daemon {
  Daemon() : reader(policies), store(std::make_shared<sluice::store::MemoryStore>(1'000)) {
    const sluice::policy::SourceText text{
        .name = "policy.yaml",
        .text = "domain: shop\ndescriptors:\n  - key: user\n    rate_limit: { unit: second, requests_per_unit: 10 }\n"};
    policies.set(sluice::policy::load_texts({&text, 1}).policy);
    options.max_buffered = 4'096;
    options.max_connection_headers = 65'536;
    options.max_header_list = 8'192;
  }

  GrpcOptions options;
  sluice::metrics::Registry registry;
  sluice::policy::SnapshotHolder policies;
  sluice::policy::SnapshotReader reader;
  std::shared_ptr<sluice::store::Store> store;
  bool draining = false;
  Service service{reader, store, registry.add_shard(), draining};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Daemon daemon;
  Silent owner;
  sluice::Time now{1'000'000'000'000, 1'767'225'600'000'000'000};
  Connection connection(owner, daemon.service, daemon.options, now);
  std::string out;
  connection.take_output(out, SIZE_MAX);

  // The preface is given, so that no input is wasted on guessing it.
  constexpr std::string_view preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  bool reading = connection.feed({reinterpret_cast<const std::uint8_t*>(preface.data()), preface.size()}, now);
  std::span<const std::uint8_t> rest(data, size);
  while (reading && rest.size() >= 2) {
    const unsigned how = rest[0];
    const std::size_t length = std::min<std::size_t>(rest[1], rest.size() - 2);
    if ((how & 1U) != 0) now.steady += 1'000'000LL * (how >> 3U);
    if ((how & 2U) != 0 && connection.next_deadline() <= now.steady) connection.expire(now);
    if (how == 0xFF) connection.drain(now);
    reading = connection.feed(rest.subspan(2, length), now);
    rest = rest.subspan(2 + length);
    out.clear();
    connection.take_output(out, (how & 4U) != 0 ? 1 : SIZE_MAX);
  }
  now.steady += 100'000'000'000;
  connection.expire(now);
  connection.take_output(out, SIZE_MAX);
  // Whatever came, after the longest wait no call of it is left on a connection that lives.
  if (!connection.finished() && connection.open_calls() != 0 && connection.next_deadline() <= now.steady) std::abort();
  return 0;
}
