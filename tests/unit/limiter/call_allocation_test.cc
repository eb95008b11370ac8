// A call on the memory store must not allocate once its buffers have grown. In a program of its own, as it replaces
// operator new.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "limiter/call.h"
#include "policy/policy.h"
#include "store/memory/memory_store.h"

namespace {

std::atomic<std::uint64_t> allocations{0};

void* counted_allocation(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;  // NOLINT(cppcoreguidelines-no-malloc)
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return counted_allocation(size); }
void* operator new[](std::size_t size) { return counted_allocation(size); }
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size == 0 ? 1 : size);
}
void* operator new[](std::size_t size, const std::nothrow_t& tag) noexcept { return operator new(size, tag); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept { std::free(memory); }

namespace sluice::limiter {
namespace {

struct Nobody final : Call::Owner {
  void answered(Call& /*call*/) override { ADD_FAILURE() << "the memory store answers at once"; }
};

TEST(CallAllocation, NoneAfterWarmUp) {
  const policy::SourceText text{"test.yaml", R"(
domain: call_allocation
descriptors:
  - key: global
    rate_limit: { unit: second, requests_per_unit: 1000000 }
  - key: user
    rate_limit: { unit: second, requests_per_unit: 2, algorithm: token_bucket, burst: 3 }
    descriptors:
      - key: path
        shadow_mode: true
        rate_limit: { unit: minute, requests_per_unit: 5 }
)"};
  const policy::Loaded loaded = policy::load_texts({&text, 1});
  ASSERT_NE(loaded.policy, nullptr);

  constexpr int kUsers = 50;
  std::array<std::string, kUsers> users;
  for (int i = 0; i < kUsers; ++i) {
    // More than fits a slot, so that long keys are looked at too.
    users[static_cast<std::size_t>(i)] = "a user with quite a long name, number " + std::to_string(i);
  }
  store::MemoryStore store(100'000);
  metrics::Registry registry;
  Nobody owner;
  Call call(owner, registry.add_shard());
  std::int64_t now = 1'767'225'600'000'000'000;
  int denied = 0;
  const auto round = [&] {
    for (const std::string& user : users) {
      const std::array<Entry, 1> global = {{{"global", ""}}};
      const std::array<Entry, 1> one = {{{"user", user}}};
      const std::array<Entry, 2> two = {{{"user", user}, {"path", "/a"}}};
      const std::array<Descriptor, 4> descriptors = {{{global, {}, {}}, {one, {}, {}}, {two, {}, {}}, {one, 0, {}}}};
      ASSERT_EQ(call.start({"call_allocation", descriptors}, loaded.policy, store, {now, now}),
                store::Progress::answered);
      denied += call.answer().allowed ? 0 : 1;
      now += 1'000'000;
    }
  };
  for (int i = 0; i < 10; ++i) round();
  const std::uint64_t before = allocations.load();
  for (int i = 0; i < 10; ++i) round();
  EXPECT_EQ(allocations.load(), before);
  EXPECT_GT(denied, 0);
}

}  // namespace
}  // namespace sluice::limiter
