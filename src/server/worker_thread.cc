#include "server/worker_thread.h"

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <exception>
#include <utility>

#include "base/log.h"

namespace sluice::server {
namespace {

template <typename Do>
void for_each_session(Worker& worker, Do act) {
  // A session may go while it is told to.
  for (auto next = worker.sessions.begin(); next != worker.sessions.end();) {
    Session& session = *next;
    ++next;
    act(session);
  }
}

}  // namespace

WorkerThread::WorkerThread(const policy::SnapshotHolder& policies, const Clock& clock, metrics::Shard& metrics,
                           const MakeStore& make_store, std::function<void()> ended)
    : worker_(policies, clock, metrics), work_(worker_.io.get_executor()), ended_(std::move(ended)) {
  // Makes the reactor and its descriptors now: they must not be wanting when connections have used up all.
  const boost::asio::ip::tcp::socket unused(worker_.io);
  worker_.store = make_store(worker_);
}

WorkerThread::~WorkerThread() {
  if (thread_.joinable()) thread_.join();
}

void WorkerThread::assign(int descriptor, boost::asio::ip::tcp protocol, const StartSession& start,
                          std::string client) {
  ++assigned_;
  boost::asio::post(worker_.io, [this, descriptor, protocol, &start, client = std::move(client)]() mutable {
    begin(descriptor, protocol, start, std::move(client));
  });
}

void WorkerThread::begin(int descriptor, boost::asio::ip::tcp protocol, const StartSession& start, std::string client) {
  boost::asio::ip::tcp::socket socket(worker_.io);
  boost::system::error_code error;
  socket.assign(protocol, descriptor, error);
  if (error) ::close(descriptor);
  const std::uint64_t opened = worker_.metrics.value(metrics::Counter::connections_opened);
  if (!error && !worker_.draining) {
    // Answers are small and written whole: waiting for more to send would only add latency.
    socket.set_option(boost::asio::ip::tcp::no_delay(true), error);
    socket.set_option(boost::asio::socket_base::keep_alive(true), error);
    try {
      start(worker_, std::move(socket), std::move(client));
    } catch (const std::exception& problem) {
      log::error("cannot serve a connection", {{"what", problem.what()}});
    }
  }
  if (worker_.metrics.value(metrics::Counter::connections_opened) == opened) {
    // No session was admitted: opened and closed at once, so that connections() stays right.
    worker_.metrics.add(metrics::Counter::connections_opened);
    worker_.metrics.add(metrics::Counter::connections_closed);
  }
}

std::uint64_t WorkerThread::connections() const {
  return assigned_ - worker_.metrics.value(metrics::Counter::connections_closed);
}

void WorkerThread::drain() {
  boost::asio::post(worker_.io, [this] {
    worker_.draining = true;
    if (worker_.sessions.empty()) {
      end_soon();
      return;
    }
    worker_.on_drained = [this] { end_soon(); };
    for_each_session(worker_, [](Session& session) { session.drain(); });
  });
}

void WorkerThread::abort() {
  boost::asio::post(worker_.io, [this] { for_each_session(worker_, [](Session& session) { session.abort(); }); });
}

void WorkerThread::end_soon() {
  // Not on the stack of the last session, which may be the store's own.
  boost::asio::post(worker_.io, [this] {
    worker_.store.reset();
    work_.reset();
  });
}

void WorkerThread::run() {
  for (;;) {
    try {
      worker_.io.run();
      break;
    } catch (const std::exception& problem) {
      // Out of memory, most likely: the connection at hand is lost, the others go on.
      log::error("an exception reached the event loop", {{"what", problem.what()}});
    }
  }
  ended_();
}

}  // namespace sluice::server
