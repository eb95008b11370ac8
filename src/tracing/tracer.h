// Which requests get a span, and where spans wait until they are sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "sluice/clock.h"
#include "tracing/span.h"
#include "tracing/trace_context.h"

namespace sluice::tracing {

/// Thread-safe. Never waits for whoever takes the spans.
class Tracer {
 public:
  static constexpr std::size_t kMostWaiting = 4'096;  ///< spans; more are dropped
  static constexpr std::size_t kBatch = 512;          ///< as many are taken at once

  /// `ratio`: the part of the traces that begin here of which spans are made, 0 … 1. `clock` tells when spans end; it
  /// must outlive the tracer.
  Tracer(double ratio, const Clock& clock);

  /// A span for a request that has come with these fields; null: it gets none. The caller's word counts, where there is
  /// one. Cost where there is none: that of a random number.
  [[nodiscard]] std::unique_ptr<Span> begin(std::string_view name, const TraceFields& fields, Time now) const;
  /// False: too many wait, so it was dropped. Cost: a lock, held for a push_back.
  [[nodiscard]] bool end(std::unique_ptr<Span> span);

  /// `wake` is called when there are spans where there were none, and when a batch is full; by the thread that ends a
  /// span, so it must be short. Before the first span.
  void on_spans(std::function<void()> wake) { wake_ = std::move(wake); }
  /// Removes at most kBatch spans, the oldest first.
  [[nodiscard]] std::vector<Span> take();
  [[nodiscard]] std::size_t waiting() const;

 private:
  const Clock& clock_;
  const std::uint64_t least_random_;  ///< of 56 bits of a trace's id: from here on it is sampled
  std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::vector<Span> spans_;
};

}  // namespace sluice::tracing
