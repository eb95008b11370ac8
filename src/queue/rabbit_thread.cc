#include "queue/rabbit_thread.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>

namespace sluice::queue::rabbit {
namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 100ms;
constexpr std::chrono::milliseconds kFirstPause = 100ms;
constexpr std::chrono::milliseconds kLongestPause = 1000ms;

int make_wake_descriptor() {
  const int descriptor = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (descriptor < 0) throw std::runtime_error("cannot make an event descriptor");
  return descriptor;
}

}  // namespace

Thread::Thread(const config::QueueSettings& settings, Owner& owner)
    : settings_(settings), owner_(owner), wake_descriptor_(make_wake_descriptor()) {}

Thread::~Thread() { ::close(wake_descriptor_); }

void Thread::start() {
  thread_ = std::thread([this] { run(); });
  watch_ = std::thread([this] { watch(); });
}

void Thread::stop() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  wake();
  thread_.join();
  watch_.join();
}

void Thread::wake() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_descriptor_, &one, sizeof one);
}

void Thread::woken() const {
  std::uint64_t count = 0;
  (void)!::read(wake_descriptor_, &count, sizeof count);
}

void Thread::run() {
  auto pause = kFirstPause;
  while (!stopping_) {
    std::string problem;
    {
      Link link(settings_, wake_descriptor_);
      {
        const std::scoped_lock lock(mutex_);
        link_ = &link;
      }
      if (link.open() && link.declare()) {
        pause = kFirstPause;
        owner_.serve(link);
      }
      link.close();
      problem = link.problem();
      {
        const std::scoped_lock lock(mutex_);
        link_ = nullptr;
      }
    }
    owner_.lost(problem);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, pause, [this] { return stopping_.load(); });
    pause = std::min(2 * pause, kLongestPause);
  }
}

void Thread::watch() {
  // A stop may take as long as two calls that are stuck; the watch goes on until the thread has ended.
  std::unique_lock lock(mutex_);
  while (!stopping_ || link_ != nullptr) {
    if (link_ != nullptr) link_->abort_if_stuck(settings_.timeout);
    lock.unlock();
    owner_.tick();
    std::this_thread::sleep_for(stopping_ ? 10ms : 0ms);
    lock.lock();
    changed_.wait_for(lock, kTick, [this] { return stopping_.load(); });
  }
}

}  // namespace sluice::queue::rabbit
