#include "server/worker_thread.h"

#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <exception>
#include <utility>

#include "base/log.h"
#include "server/tls_handshake.h"

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

void WorkerThread::assign(Arrival arrival) {
  ++assigned_;
  boost::asio::post(worker_.io, [this, arrival = std::move(arrival)]() mutable { begin(std::move(arrival)); });
}

void WorkerThread::begin(Arrival arrival) {
  Transport::Socket socket(worker_.io);
  boost::system::error_code error;
  socket.assign(arrival.protocol, arrival.descriptor, error);
  if (error) {
    ::close(arrival.descriptor);
  } else {
    socket.non_blocking(true, error);
  }
  // Answers are small and written whole: waiting for more to send would only add latency. Not every kind of socket has
  // these options.
  boost::system::error_code ignored;
  socket.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
  Transport transport(worker_, std::move(socket), arrival.open, std::move(arrival.tls));
  // What was accepted before the listener closed may have asked already, so it is served and drained.
  if (error || worker_.store == nullptr) return;
  try {
    if (transport.has_tls()) {
      start_tls_session(worker_, std::move(transport), *arrival.start, std::move(arrival.client));
    } else {
      (*arrival.start)(worker_, std::move(transport), std::move(arrival.client));
    }
  } catch (const std::exception& problem) {
    log::error("cannot serve a connection", {{"what", problem.what()}});
  }
}

std::uint64_t WorkerThread::connections() const {
  return assigned_ - worker_.metrics.value(metrics::Counter::connections_closed);
}

void WorkerThread::tend() {
  boost::asio::post(worker_.io, [this] {
    if (worker_.store != nullptr) worker_.store->tend(worker_.clock.now());
  });
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
    if (!worker_.sessions.empty()) {  // one has begun meanwhile
      worker_.on_drained = [this] { end_soon(); };
      return;
    }
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
