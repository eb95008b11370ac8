#include "tracing/tracer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <random>
#include <utility>

namespace sluice::tracing {
namespace {

constexpr std::uint64_t kRandomBits = 56;  // of a trace's id, its last, as W3C has it
constexpr std::uint64_t kAllRandom = std::uint64_t{1} << kRandomBits;

std::uint64_t random_number() {
  thread_local std::mt19937_64 engine = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  return engine();
}

template <std::size_t kSize>
void put(std::uint64_t number, std::array<std::uint8_t, kSize>& bytes, std::size_t at) {
  for (std::size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<std::uint8_t>(number >> (8 * (7 - i)));
}

// Not 0, as an id must not be.
std::uint64_t random_id() {
  for (;;) {
    if (const std::uint64_t number = random_number(); number != 0) return number;
  }
}

}  // namespace

Tracer::Tracer(double ratio, const Clock& clock)
    : clock_(clock),
      least_random_(kAllRandom - static_cast<std::uint64_t>(std::llround(ratio * static_cast<double>(kAllRandom)))) {
  spans_.reserve(kBatch);
}

std::unique_ptr<Span> Tracer::begin(std::string_view name, const TraceFields& fields, Time now) const {
  std::uint64_t low = 0;
  if (fields.parent()) {
    if (!fields.parent()->is_sampled()) return nullptr;
  } else {
    low = random_id();
    if (low % kAllRandom < least_random_) return nullptr;
  }
  auto span = std::make_unique<Span>();
  if (const auto& parent = fields.parent()) {
    span->trace = parent->trace;
    span->parent = parent->span;
    span->has_parent = true;
    span->flags = parent->flags;
    span->state = fields.state();
  } else {
    put(random_number(), span->trace, 0);
    put(low, span->trace, 8);
  }
  put(random_id(), span->id, 0);
  span->name = name;
  span->begun = now.utc;
  span->begun_at = now.steady;
  return span;
}

bool Tracer::end(std::unique_ptr<Span> span) {
  // The system's clock may have been set meanwhile.
  span->ended = span->begun + std::max<std::int64_t>(0, clock_.now().steady - span->begun_at);
  std::size_t waiting = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (spans_.size() >= kMostWaiting) return false;
    spans_.push_back(std::move(*span));
    waiting = spans_.size();
  }
  if (wake_ && (waiting == 1 || waiting == kBatch)) wake_();
  return true;
}

std::vector<Span> Tracer::take() {
  std::vector<Span> taken;
  const std::scoped_lock lock(mutex_);
  if (spans_.size() <= kBatch) {
    taken.swap(spans_);
    return taken;
  }
  const auto end = spans_.begin() + kBatch;
  taken.assign(std::make_move_iterator(spans_.begin()), std::make_move_iterator(end));
  spans_.erase(spans_.begin(), end);
  return taken;
}

std::size_t Tracer::waiting() const {
  const std::scoped_lock lock(mutex_);
  return spans_.size();
}

}  // namespace sluice::tracing
