// What callbacks of other threads hold of a loop's owner, so that late ones find nobody.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace sluice::queue {

/// Thread-safe.
class LoopHandle {
 public:
  explicit LoopHandle(boost::asio::io_context& io) : io_(&io) {}
  /// The owner ends: nothing runs any more. On the loop's thread, or when the loop has ended.
  void end() {
    const std::scoped_lock lock(mutex_);
    io_ = nullptr;
  }
  /// Runs `work` on the loop's thread, if there is still an owner then.
  static void post(const std::shared_ptr<LoopHandle>& self, std::function<void()> work) {
    const std::scoped_lock lock(self->mutex_);
    if (self->io_ == nullptr) return;
    self->works_.push_back(std::move(work));
    // What comes until its turn goes with it.
    if (self->works_.size() == 1) boost::asio::post(*self->io_, [self] { self->run(); });
  }

 private:
  void run() {
    std::vector<std::function<void()>> works;
    {
      const std::scoped_lock lock(mutex_);
      works.swap(works_);
    }
    for (const auto& work : works) {
      if (!is_alive()) return;
      work();
    }
  }
  bool is_alive() {
    const std::scoped_lock lock(mutex_);
    return io_ != nullptr;
  }
  std::mutex mutex_;
  boost::asio::io_context* io_;
  std::vector<std::function<void()>> works_;
};

}  // namespace sluice::queue
