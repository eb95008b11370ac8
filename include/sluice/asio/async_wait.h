// Waiting at a limiter without a thread: Boost.Asio operations. The only header of the library that needs Boost.
#pragma once

#include <algorithm>
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/deadline.h"
#include "sluice/internal/waits.h"
#include "sluice/wait_result.h"

namespace sluice {

namespace internal {

// What the operations of one AsyncWaits share: the way to the line, the bound, and the one timer.
class AsyncLine : public std::enable_shared_from_this<AsyncLine> {
 public:
  AsyncLine(boost::asio::any_io_executor executor, std::shared_ptr<Waits> waits, std::size_t most)
      : executor_(std::move(executor)), timer_(executor_), waits_(*waits), held_(std::move(waits)), most_(most) {}

  [[nodiscard]] const boost::asio::any_io_executor& executor() const noexcept { return executor_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

  // Room for one more; give it back by leave().
  [[nodiscard]] bool enter() noexcept {
    std::size_t size = size_.load(std::memory_order_relaxed);
    while (size < most_) {
      if (size_.compare_exchange_weak(size, size + 1, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  // Nobody who waits: no timer, so that an execution context with nothing else to do ends.
  void leave() noexcept {
    const std::scoped_lock lock(timer_mutex_);
    if (size_.fetch_sub(1, std::memory_order_relaxed) == 1) timer_.cancel();
  }

  // Calls function(waits), or returns false: closed. Once close() has returned, the limiter may be gone.
  template <typename Function>
  bool with_waits(Function function) {
    const std::scoped_lock lock(open_mutex_);
    if (held_ == nullptr) return false;
    function(waits_);
    return true;
  }

  // Called with the limiter's line locked. False when there is no memory for it. A wait of the timer that was under way
  // then ends, and tries again, with its own memory.
  [[nodiscard]] bool wake_at(std::int64_t ready) noexcept {
    const std::scoped_lock lock(timer_mutex_);
    try {
      timer_.expires_after(std::chrono::nanoseconds(std::max<std::int64_t>(ready - waits_.now(), 0)));
      timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
        if (!error || self->is_unset()) self->with_waits([](Waits& waits) { waits.grant_due(); });
      });
      unset_ = false;
    } catch (...) {
      unset_ = true;
    }
    return !unset_;
  }

  void cancel() noexcept {
    with_waits([this](Waits& waits) { waits.withdraw_all(this); });
  }
  void close() noexcept {
    const std::scoped_lock lock(open_mutex_);
    if (held_ == nullptr) return;
    waits_.withdraw_all(this);
    held_.reset();
    const std::scoped_lock timer_lock(timer_mutex_);
    timer_.cancel();
  }

 private:
  [[nodiscard]] bool is_unset() noexcept {
    const std::scoped_lock lock(timer_mutex_);
    return unset_;
  }

  boost::asio::any_io_executor executor_;
  std::mutex timer_mutex_;
  boost::asio::steady_timer timer_;
  bool unset_ = false;               // it ought to run, but couldn't be set
  std::recursive_mutex open_mutex_;  // before the line's lock, which is before the timer's
  Waits& waits_;                     // good while held_ is, and while the line calls
  std::shared_ptr<Waits> held_;
  const std::size_t most_;
  std::atomic<std::size_t> size_{0};
};

// One who waits asynchronously.
template <typename Handler>
class AsyncWait final : public Waiter {
 public:
  using Executor = boost::asio::associated_executor_t<Handler, boost::asio::any_io_executor>;
  using Allocator = boost::asio::associated_allocator_t<Handler>;

  static void start(const std::shared_ptr<AsyncLine>& line, Handler handler, std::uint64_t cost,
                    const Deadline& deadline) {
    std::unique_ptr<AsyncWait, Destroy> owned(create(line, std::move(handler)));
    AsyncWait* const wait = owned.get();
    wait->counted_ = line->enter();
    try {
      if (wait->counted_) wait->listen();
      const bool open = line->with_waits([&](Waits& waits) {
        if (!wait->counted_) return owned.release()->finish(waits.refuse(cost, WaitOutcome::full));
        const auto at_once = waits.enqueue(*wait, cost, deadline);
        static_cast<void>(owned.release());  // it may be gone already
        if (at_once) wait->finish(*at_once);
      });
      if (!open) owned.release()->finish({.outcome = WaitOutcome::stopped});
    } catch (...) {  // no memory: it isn't in the line
      wait->stop_listening();
      if (wait->counted_) line->leave();
      throw;
    }
  }

  [[nodiscard]] bool lead(std::int64_t ready) noexcept override { return line_->wake_at(ready); }

  // Not the end of this object: its memory and the handler's work are needed until the handler is called.
  void finish(const WaitResult& result) noexcept override {
    result_ = result;
    if (counted_) line_->leave();
    boost::asio::post(Completion(this));
  }

 private:
  struct Destroy {
    void operator()(AsyncWait* wait) const noexcept { destroy(wait); }
  };

  // Owns the operation from its end until its handler is called, or thrown away with the executor.
  class Completion {
   public:
    using executor_type = Executor;    // NOLINT(readability-identifier-naming): Asio's names
    using allocator_type = Allocator;  // NOLINT(readability-identifier-naming)

    explicit Completion(AsyncWait* wait) : wait_(wait) {}

    [[nodiscard]] executor_type get_executor() const noexcept { return wait_->executor_; }
    [[nodiscard]] allocator_type get_allocator() const noexcept {
      return boost::asio::get_associated_allocator(wait_->handler_);
    }

    void operator()() {
      wait_->stop_listening();
      const WaitResult result = wait_->result_;
      const auto work = std::move(wait_->work_);
      Handler handler = take_handler(wait_.release());
      const bool stopped = result.outcome == WaitOutcome::stopped;
      std::move(handler)(
          stopped ? boost::system::error_code(boost::asio::error::operation_aborted) : boost::system::error_code(),
          result);
    }

   private:
    std::unique_ptr<AsyncWait, Destroy> wait_;
  };

  using Rebound = typename std::allocator_traits<Allocator>::template rebind_alloc<AsyncWait>;
  using Traits = std::allocator_traits<Rebound>;

  AsyncWait(const std::shared_ptr<AsyncLine>& line, Handler handler)
      : Waiter(line.get()),
        line_(line),
        handler_(std::move(handler)),
        executor_(boost::asio::get_associated_executor(handler_, line->executor())),
        work_(executor_),
        line_work_(line->executor()) {}
  ~AsyncWait() = default;

  // What is in the slot stays there when this object is thrown away: the signal may be gone by then, or stay for long.
  void listen() {
    auto slot = boost::asio::get_associated_cancellation_slot(handler_);
    if (!slot.is_connected()) return;
    self_ = std::shared_ptr<AsyncWait>(this, [](AsyncWait*) {});
    slot.assign([known_line = std::weak_ptr<AsyncLine>(line_),
                 known = std::weak_ptr<AsyncWait>(self_)](boost::asio::cancellation_type type) {
      const auto line = known_line.lock();
      const auto wait = known.lock();
      if (type == boost::asio::cancellation_type::none || line == nullptr || wait == nullptr) return;
      line->with_waits([&](Waits& waits) { waits.withdraw(*wait); });
    });
  }
  void stop_listening() {
    auto slot = boost::asio::get_associated_cancellation_slot(handler_);
    if (slot.is_connected()) slot.clear();
  }

  static AsyncWait* create(const std::shared_ptr<AsyncLine>& line, Handler handler) {
    Rebound allocator(boost::asio::get_associated_allocator(handler));
    AsyncWait* const memory = std::to_address(Traits::allocate(allocator, 1));
    try {
      return new (memory) AsyncWait(line, std::move(handler));
    } catch (...) {
      Traits::deallocate(allocator, memory, 1);
      throw;
    }
  }
  static void destroy(AsyncWait* wait) noexcept {
    Rebound allocator(boost::asio::get_associated_allocator(wait->handler_));
    wait->~AsyncWait();
    Traits::deallocate(allocator, wait, 1);
  }
  // The handler, without the operation: its memory is free for what the handler starts.
  static Handler take_handler(AsyncWait* wait) {
    Rebound allocator(boost::asio::get_associated_allocator(wait->handler_));
    Handler handler(std::move(wait->handler_));
    wait->~AsyncWait();
    Traits::deallocate(allocator, wait, 1);
    return handler;
  }

  std::shared_ptr<AsyncLine> line_;
  Handler handler_;
  Executor executor_;
  boost::asio::executor_work_guard<Executor> work_;
  boost::asio::executor_work_guard<boost::asio::any_io_executor> line_work_;
  std::shared_ptr<AsyncWait> self_;  // owns nothing; for the slot to know whether this object is there
  WaitResult result_;
  bool counted_ = true;
};

// What async_initiate calls.
struct InitiateAsyncWait {
  using executor_type = boost::asio::any_io_executor;  // NOLINT(readability-identifier-naming)

  [[nodiscard]] executor_type get_executor() const noexcept { return line->executor(); }
  template <typename Handler>
  void operator()(Handler&& handler, std::uint64_t cost, const Deadline& deadline) const {
    AsyncWait<std::decay_t<Handler>>::start(line, std::forward<Handler>(handler), cost, deadline);
  }

  std::shared_ptr<AsyncLine> line;
};

}  // namespace internal

/// Asynchronous waits at one TokenBucket or LeakyBucket, which may have others: all who wait at a limiter, here, in
/// other AsyncWaits and in threads, stand in one line (see WaitingVerbs).
///
///     boost::asio::io_context io;
///     sluice::TokenBucket bucket{{.rate = 100, .period = 1s, .burst = 10}};
///     sluice::AsyncWaits waits(io, bucket);
///     waits.async_wait([](boost::system::error_code error, sluice::WaitResult result) {
///       if (!error && result) send();
///     });
///
/// At most `max_waiters` wait; whoever comes then is refused with the outcome `full`. There is one timer for all of
/// them, set to the first one's instant; all whose instants have come when it fires are served by that one wake-up.
///
/// Thread-safe, but for the destructor. Cancellation of one wait (a cancellation slot of its handler), of all (cancel)
/// and the destruction of this object complete waits with `operation_aborted` and the outcome `stopped`, and give back
/// exactly what they took. Must be destroyed before the limiter, and before the execution context is.
class AsyncWaits {
 public:
  /// What get_executor gives.
  using executor_type = boost::asio::any_io_executor;  // NOLINT(readability-identifier-naming): Asio's name

  /// Unless told otherwise, so many may wait.
  static constexpr std::size_t kMaxWaiters = 65'536;

  /// The timer runs on `executor`, and so do handlers that have no executor of their own.
  template <typename Limiter>
  AsyncWaits(executor_type executor, Limiter& limiter, std::size_t max_waiters = kMaxWaiters)
      : line_(std::make_shared<internal::AsyncLine>(
            std::move(executor), std::shared_ptr<internal::Waits>(std::shared_ptr<void>(), &internal_waits_of(limiter)),
            max_waiters)) {}
  /// The same on an execution context's executor.
  template <typename Context, typename Limiter>
    requires std::convertible_to<Context&, boost::asio::execution_context&>
  AsyncWaits(Context& context, Limiter& limiter, std::size_t max_waiters = kMaxWaiters)
      : AsyncWaits(executor_type(context.get_executor()), limiter, max_waiters) {}
  AsyncWaits(const AsyncWaits&) = delete;
  AsyncWaits& operator=(const AsyncWaits&) = delete;
  ~AsyncWaits() { line_->close(); }

  /// The executor given at the start.
  [[nodiscard]] executor_type get_executor() const noexcept { return line_->executor(); }

  /// Waits until `cost` can be had, and takes it. Handlers are called as void(boost::system::error_code, WaitResult),
  /// with `operation_aborted` when the wait was cancelled, and success else, whatever the outcome: that there is no
  /// waiting is an answer, too. Never calls the handler before it returns. Uses the handler's associated executor,
  /// allocator and cancellation slot (of any type). Throws std::bad_alloc when there is no memory to wait: then nothing
  /// was taken, and the handler isn't called.
  template <typename Token>
  auto async_wait(std::uint64_t cost, const Deadline& deadline, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, WaitResult)>(
        internal::InitiateAsyncWait{line_}, token, cost, deadline);
  }
  /// Without a deadline.
  template <typename Token>
  auto async_wait(std::uint64_t cost, Token&& token) {
    return async_wait(cost, Deadline(), std::forward<Token>(token));
  }
  /// For one token.
  template <typename Token>
  auto async_wait(Token&& token) {
    return async_wait(1, Deadline(), std::forward<Token>(token));
  }

  /// How many wait now.
  [[nodiscard]] std::size_t size() const noexcept { return line_->size(); }

  /// Ends all waits of this object.
  void cancel() noexcept { line_->cancel(); }

 private:
  std::shared_ptr<internal::AsyncLine> line_;
};

/// The same for each key of a Keyed<TokenBucket> or Keyed<LeakyBucket>: each key has a line and a timer of its own,
/// while somebody waits.
///
///     sluice::Keyed<sluice::TokenBucket> per_user{{.rate = 10, .burst = 30}};
///     sluice::KeyedAsyncWaits waits(io, per_user, 100);  // at most 100 for each user
///     waits.async_wait(user, 1, 500ms, [](boost::system::error_code error, sluice::WaitResult result) { … });
///
/// Otherwise as AsyncWaits.
template <typename Limiter>
class KeyedAsyncWaits {
 public:
  /// What timers run on.
  using executor_type = boost::asio::any_io_executor;  // NOLINT(readability-identifier-naming): Asio's name
  /// What a call takes for a key.
  using KeyArgument = typename Limiter::KeyArgument;

  /// Timers run on `executor`, and so do handlers that have no executor of their own. `max_waiters`: of each key.
  KeyedAsyncWaits(executor_type executor, Limiter& limiter, std::size_t max_waiters = AsyncWaits::kMaxWaiters)
      : lines_(std::move(executor), max_waiters), limiter_(limiter) {}
  /// The same on an execution context's executor.
  template <typename Context>
    requires std::convertible_to<Context&, boost::asio::execution_context&>
  KeyedAsyncWaits(Context& context, Limiter& limiter, std::size_t max_waiters = AsyncWaits::kMaxWaiters)
      : KeyedAsyncWaits(executor_type(context.get_executor()), limiter, max_waiters) {}
  KeyedAsyncWaits(const KeyedAsyncWaits&) = delete;
  KeyedAsyncWaits& operator=(const KeyedAsyncWaits&) = delete;
  ~KeyedAsyncWaits() {
    for (const auto& line : lines_.all()) line->close();
  }

  /// The executor given at the start.
  [[nodiscard]] executor_type get_executor() const noexcept { return lines_.executor; }

  /// Waits until `cost` of the key's can be had, and takes it: see AsyncWaits::async_wait.
  template <typename Token>
  auto async_wait(KeyArgument key, std::uint64_t cost, const Deadline& deadline, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, WaitResult)>(
        internal::InitiateAsyncWait{lines_.line(internal_waits_of(limiter_, key))}, token, cost, deadline);
  }
  /// Without a deadline.
  template <typename Token>
  auto async_wait(KeyArgument key, std::uint64_t cost, Token&& token) {
    return async_wait(key, cost, Deadline(), std::forward<Token>(token));
  }
  /// For one token.
  template <typename Token>
  auto async_wait(KeyArgument key, Token&& token) {
    return async_wait(key, 1, Deadline(), std::forward<Token>(token));
  }

  /// Ends all waits of this object.
  void cancel() noexcept {
    for (const auto& line : lines_.all()) line->cancel();
  }

 private:
  using Line = internal::AsyncLine;

  // The lines in use, by the limiter's own; each is dropped with its last wait.
  struct Lines {
    Lines(executor_type of, std::size_t at_most) : executor(std::move(of)), most(at_most) {}

    std::shared_ptr<Line> line(std::shared_ptr<internal::Waits> waits) {
      const internal::Waits* const name = waits.get();
      const std::scoped_lock lock(mutex);
      std::weak_ptr<Line>& known = in_use[name];
      auto line = known.lock();
      if (line == nullptr) {
        line = std::make_shared<Line>(executor, std::move(waits), most);
        known = line;
        if (in_use.size() >= next_cleaning) clean();
      }
      return line;
    }
    std::vector<std::shared_ptr<Line>> all() {
      std::vector<std::shared_ptr<Line>> result;
      const std::scoped_lock lock(mutex);
      result.reserve(in_use.size());
      for (const auto& [name, known] : in_use) {
        if (auto line = known.lock()) result.push_back(std::move(line));
      }
      return result;
    }
    void clean() {
      std::erase_if(in_use, [](const auto& one) { return one.second.expired(); });
      constexpr std::size_t kFew = 64;
      next_cleaning = std::max(kFew, 2 * in_use.size());
    }

    const executor_type executor;
    const std::size_t most;
    std::mutex mutex;
    std::unordered_map<const internal::Waits*, std::weak_ptr<Line>> in_use;
    std::size_t next_cleaning = 64;
  };

  Lines lines_;
  Limiter& limiter_;
};

}  // namespace sluice
