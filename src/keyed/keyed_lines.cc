#include "keyed/keyed_lines.h"

#include <utility>

#include "sluice/internal/counter_clock.h"

namespace sluice::keyed {

std::int64_t KeyedLine::machine_now() const noexcept { return internal::steady_now(); }

std::shared_ptr<KeyedLine> KeyedLines::find(const Spot& spot) {
  if (size_.load(std::memory_order_acquire) == 0) return nullptr;
  const std::scoped_lock lock(mutex_);
  const auto found = lines_.find(spot);
  return found != lines_.end() ? found->second.lock() : nullptr;
}

std::shared_ptr<KeyedLine> KeyedLines::line(const Spot& spot, const Clock* clock) {
  // One that rests is looked at for each that is made or used, so they don't add up.
  if (auto resting = next_resting(); resting != nullptr && !resting->queue().is_idle()) {
    keep_until_idle(std::move(resting));
  }
  std::shared_ptr<KeyedLine> line;
  {
    const std::scoped_lock lock(mutex_);
    std::weak_ptr<KeyedLine>& known = lines_[spot];
    line = known.lock();
    if (line == nullptr) {
      line = std::shared_ptr<KeyedLine>(new KeyedLine(store_, spot, numbers_, order_),
                                        [this](KeyedLine* gone) { remove(gone); });
      known = line;
      size_.store(lines_.size(), std::memory_order_release);
    }
  }
  line->queue().with_clock(clock);
  return line;
}

void KeyedLines::remove(KeyedLine* line) {
  const std::unique_ptr<KeyedLine> owned(line);
  const std::scoped_lock lock(mutex_);
  const auto found = lines_.find(line->spot());
  if (found != lines_.end() && found->second.expired()) lines_.erase(found);
  size_.store(lines_.size(), std::memory_order_release);
}

std::shared_ptr<KeyedLine> KeyedLines::next_resting() {
  const std::scoped_lock lock(mutex_);
  if (resting_.empty()) return nullptr;
  std::shared_ptr<KeyedLine> next = std::move(resting_.back());
  resting_.pop_back();
  return next;
}

void KeyedLines::keep_until_idle(std::shared_ptr<KeyedLine> line) {
  const std::scoped_lock lock(mutex_);
  // Not always the same is looked at next.
  resting_.push_back(std::move(line));
  std::swap(resting_.back(), resting_[turn_++ % resting_.size()]);
}

std::vector<std::shared_ptr<KeyedLine>> KeyedLines::all() {
  std::vector<std::shared_ptr<KeyedLine>> result;
  const std::scoped_lock lock(mutex_);
  result.reserve(lines_.size());
  for (const auto& [spot, known] : lines_) {
    if (auto line = known.lock()) result.push_back(std::move(line));
  }
  return result;
}

Decision KeyedReserver::cancel(void* held, std::int64_t now) noexcept {
  const std::unique_ptr<KeyedReserver> self(this);
  return line_->queue().cancel(held, now);
}

void KeyedReserver::keep(void* held) noexcept {
  const std::unique_ptr<KeyedReserver> self(this);
  line_->queue().keep(held);
  if (!line_->queue().is_idle()) lines_.keep_until_idle(std::move(line_));
}

}  // namespace sluice::keyed
