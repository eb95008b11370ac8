// HTTP by bytes, with decisions below. The first byte picks listener and store, the second how the bytes are cut; cut
// or whole, the same answers must come back, and every answer must be a response.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "front/http/http_connection.h"
#include "fuzz/support.h"
#include "policy/policy.h"
#include "policy/snapshot_holder.h"
#include "store/memory/memory_store.h"

namespace {

namespace http = sluice::http;

constexpr std::string_view kPolicy = R"(
domain: shop
descriptors:
  - key: user
    rate_limit: { name: n, unit: second, requests_per_unit: 2, algorithm: token_bucket, burst: 3 }
  - key: "*"
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: free
    rate_limit: { unlimited: true }
)";

using sluice::fuzz::require;

const std::shared_ptr<const sluice::policy::Policy>& policy() {
  static const std::shared_ptr<const sluice::policy::Policy> loaded = sluice::fuzz::load(kPolicy);
  return loaded;
}

class FixedClock final : public sluice::Clock {
 public:
  [[nodiscard]] sluice::Time now() const override {
    return {.steady = 1'000'000'000, .utc = 1'767'225'600'000'000'000};
  }
};

/// Answers at once, or each check when it is told to.
class FuzzStore final : public sluice::store::Store {
 public:
  explicit FuzzStore(bool slow) : slow_(slow) {}
  sluice::store::Progress check(sluice::store::Check& check, sluice::Time now) override {
    if (!slow_) return memory_.check(check, now);
    waiting_.push_back(&check);
    return sluice::store::Progress::pending;
  }
  void cancel(sluice::store::Check& check) override { std::erase(waiting_, &check); }
  bool answer_one(sluice::Time now) {
    if (waiting_.empty()) return false;
    sluice::store::Check& check = *waiting_.front();
    waiting_.erase(waiting_.begin());
    require(memory_.check(check, now) == sluice::store::Progress::answered);
    check.complete();
    return true;
  }

 private:
  bool slow_;
  std::vector<sluice::store::Check*> waiting_;
  sluice::store::MemoryStore memory_{64};
};

class Peer final : private http::HttpConnection::Host {
 public:
  Peer(bool admin, bool slow) : store_(slow) {
    context_.role = admin ? http::Role::admin : http::Role::service;
    context_.options.max_head = 2048;
    context_.options.max_body = 1024;
    context_.options.max_unsent = 1500;
    context_.registry = &registry_;
    context_.throttle_deny_status = 200;
    policies_.set(policy());
    http::HttpConnection::Host& host = *this;
    connection_ = std::make_unique<http::HttpConnection>(environment_, host, clock_.now());
  }

  void feed(std::string_view bytes) {
    connection_->feed(bytes, clock_.now());
    take();
  }
  std::string end() {
    connection_->end_of_input(clock_.now());
    take();
    require(connection_->finished() && !connection_->lingers());
    return std::move(output_);
  }

 private:
  void resumed() override {}
  void take() {
    do {
      while (!connection_->output().empty()) {
        const std::size_t size = std::min<std::size_t>(connection_->output().size(), 1000);
        output_.append(connection_->output().substr(0, size));
        connection_->sent(size, clock_.now());
      }
    } while (store_.answer_one(clock_.now()));
    require(connection_->deadline() > clock_.now().steady);
  }

  FixedClock clock_;
  FuzzStore store_;
  sluice::policy::SnapshotHolder policies_;
  sluice::policy::SnapshotReader reader_{policies_};
  sluice::metrics::Registry registry_;
  sluice::metrics::Shard& shard_ = registry_.add_shard();
  http::HttpContext context_;
  http::Scratch scratch_;
  bool draining_ = false;
  http::Environment environment_{context_, reader_, store_, shard_, clock_, draining_, scratch_, false};
  std::unique_ptr<http::HttpConnection> connection_;
  std::string output_;
};

/// Leave to send a body is given when the body has not come yet, so it depends on the cut.
std::string without_continue(std::string text) {
  constexpr std::string_view leave = "HTTP/1.1 100 Continue\r\n\r\n";
  for (std::size_t at = text.find(leave); at != std::string::npos; at = text.find(leave, at))
    text.erase(at, leave.size());
  return text;
}

/// Counters that the sanitizer's own schedule cannot change, but the number of cuts could, are not compared.
bool is_compared(const std::string& output) { return output.find("# HELP") == std::string::npos; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const bool admin = (data[0] & 1U) != 0;
  const bool slow = (data[0] & 2U) != 0;
  const std::size_t step = std::max<std::size_t>(data[1], 1);
  const std::string_view bytes(reinterpret_cast<const char*>(data + 2), size - 2);

  Peer whole(admin, slow);
  whole.feed(bytes);
  const std::string expected = without_continue(whole.end());
  require(expected.empty() || expected.starts_with("HTTP/1.1 "));

  Peer cut(admin, slow);
  for (std::size_t at = 0; at < bytes.size(); at += step) cut.feed(bytes.substr(at, step));
  const std::string output = without_continue(cut.end());
  if (is_compared(expected)) require(output == expected);
  return 0;
}
