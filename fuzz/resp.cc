// RESP by bytes, with decisions below. The first byte picks the store and the password, the second how the bytes are
// cut; cut or whole, the same replies must come back.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "front/resp/connection.h"
#include "fuzz/support.h"
#include "policy/policy.h"
#include "policy/snapshot_holder.h"
#include "store/memory/memory_store.h"

namespace {

namespace resp = sluice::resp;

constexpr std::string_view kPolicy = R"(
domain: shop
descriptors:
  - key: user
    rate_limit: { name: n, unit: second, requests_per_unit: 2, algorithm: token_bucket, burst: 3 }
)";
constexpr sluice::Time kNow{.steady = 1'000'000'000, .utc = 1'767'225'600'000'000'000};

using sluice::fuzz::require;

const std::shared_ptr<const sluice::policy::Policy>& policy() {
  static const std::shared_ptr<const sluice::policy::Policy> loaded = sluice::fuzz::load(kPolicy);
  return loaded;
}

class Peer final : private resp::Connection::Host {
 public:
  Peer(bool has_password, bool is_guarded) {
    if (has_password) options_.password = "secret";
    options_.guard.is_on = is_guarded;
    policies_.set(policy());
    resp::Connection::Host& host = *this;
    connection_ = std::make_unique<resp::Connection>(resp::Environment{.options = options_,
                                                                       .policy = reader_,
                                                                       .store = store_,
                                                                       .metrics = registry_.add_shard(),
                                                                       .limits = limits_},
                                                     host, 1, kNow);
  }

  std::string talk(std::string_view bytes, std::size_t piece) {
    std::string all;
    while (!bytes.empty() && connection_->wants_input()) {
      const std::string_view next = bytes.substr(0, piece);
      bytes.remove_prefix(next.size());
      connection_->feed(next, kNow);
      while (!connection_->output().empty()) {
        all += connection_->output();
        connection_->sent(connection_->output().size(), kNow);
      }
    }
    return all;
  }

 private:
  void resumed() override {}

  resp::RespOptions options_;
  sluice::policy::SnapshotHolder policies_;
  sluice::policy::SnapshotReader reader_{policies_};
  sluice::store::MemoryStore store_{64};
  sluice::metrics::Registry registry_;
  resp::ThrottleLimits limits_;
  std::unique_ptr<resp::Connection> connection_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const bool has_password = (data[0] & 1U) != 0;
  const bool is_guarded = (data[0] & 2U) != 0;
  const std::size_t piece = 1 + data[1] % 64;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string whole = Peer(has_password, is_guarded).talk(bytes, bytes.size() + 1);
  require(whole == Peer(has_password, is_guarded).talk(bytes, piece));
  return 0;
}
