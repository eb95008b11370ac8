#include "store/memory/live_limit.h"

#include <cassert>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

#include "algorithm/calendar.h"

namespace sluice::store::memory {
namespace {

struct Table {
  std::mutex mutex;
  std::unordered_multimap<std::uint32_t, const LiveLimit*> by_id;
};

// Never destroyed: a store or a policy that outlives main's statics may still release.
Table& table() {
  static auto* const kAll = new Table;
  return *kAll;
}

}  // namespace

const LiveLimit* LiveLimit::find(const CountedLimit& limit) noexcept {
  try {
    Table& all = table();
    const std::scoped_lock lock(all.mutex);
    const auto [begin, end] = all.by_id.equal_range(limit.id);
    for (auto entry = begin; entry != end; ++entry) {
      if (entry->second->numbers != limit.numbers) continue;
      entry->second->share();
      return static_cast<const LiveLimit*>(limit.derived.fill(entry->second));
    }
    auto compiled =
        algorithm::CompiledLimit::compile(limit.numbers, algorithm::Tick::nanosecond, &algorithm::open_calendar);
    if (!compiled) return nullptr;
    auto made = std::make_unique<LiveLimit>(*std::move(compiled), limit.id, limit.numbers);
    all.by_id.emplace(limit.id, made.get());
    return static_cast<const LiveLimit*>(limit.derived.fill(made.release()));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void LiveLimit::release() const noexcept {
  // The last share is given up under the table's lock only, so that find() never revives what another thread deletes.
  std::uint64_t shares = shares_.load(std::memory_order_relaxed);
  while (shares > 1) {
    if (shares_.compare_exchange_weak(shares, shares - 1, std::memory_order_acq_rel)) return;
  }
  Table& all = table();
  {
    const std::scoped_lock lock(all.mutex);
    if (shares_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const auto [begin, end] = all.by_id.equal_range(id);
    for (auto entry = begin; entry != end; ++entry) {
      if (entry->second != this) continue;
      all.by_id.erase(entry);
      break;
    }
  }
  delete this;
}

std::size_t live_limit_count() {
  Table& all = table();
  const std::scoped_lock lock(all.mutex);
  return all.by_id.size();
}

}  // namespace sluice::store::memory
