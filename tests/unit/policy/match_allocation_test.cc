// A look-up allocates nothing once the buffer for keys has grown.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "tests/unit/policy/policy_text.h"

namespace {
std::atomic<std::size_t> allocations{0};
}  // namespace

void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

namespace sluice::policy {
namespace {

TEST(MatchAllocation, IsNone) {
  const auto policy = policy_of(R"(
domain: d
descriptors:
  - key: tenant
    descriptors:
      - { key: path, value: "/api/*/x*", rate_limit: { unit: day, requests_per_unit: 1 } }
      - { key: path, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: "k*", rate_limit: { unit: day, requests_per_unit: 1 } }
)");
  const std::vector<std::vector<Entry>> descriptors{
      {{"tenant", "a-name-longer-than-a-short-string"}, {"path", "/api/feed/xyz"}},
      {{"tenant", "a b{}"}, {"path", "/other"}},
      {{"key", "1"}},
      {{"unknown", "1"}},
      {{"tenant", "x"}, {"unknown", "y"}}};
  std::string key;
  key.reserve(1'000);
  const std::size_t before = allocations.load();
  std::size_t matches = 0;
  for (const std::vector<Entry>& descriptor : descriptors) {
    key.clear();
    if (policy->match(*policy->find_domain("d"), descriptor, key) != nullptr) ++matches;
  }
  const std::size_t after = allocations.load();
  EXPECT_EQ(after - before, 0U);
  EXPECT_EQ(matches, 3U);
}

}  // namespace
}  // namespace sluice::policy
