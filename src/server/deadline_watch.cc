#include "server/deadline_watch.h"

#include <boost/system/error_code.hpp>

namespace sluice::server {

DeadlineWatch::DeadlineWatch(boost::asio::io_context& io) : service(io), timer_(io) {}

void DeadlineWatch::add(Watched& session, const Clock& clock) {
  clock_ = &clock;
  sessions_.push_back(session);
  if (!armed_) arm();
}

void DeadlineWatch::session_ended() {
  if (sessions_.empty()) timer_.cancel();
}

void DeadlineWatch::arm() {
  armed_ = true;
  timer_.expires_after(kTick);
  timer_.async_wait([this](const boost::system::error_code&) {
    armed_ = false;
    if (!sessions_.empty()) sweep();
  });
}

void DeadlineWatch::sweep() {
  const Time now = clock_->now();
  for (auto next = sessions_.begin(); next != sessions_.end();) {
    Watched& session = *next++;
    session.check_deadline(now);
  }
  if (!sessions_.empty()) arm();
}

void DeadlineWatch::shutdown() {
  while (!sessions_.empty()) {
    Watched& session = sessions_.front();
    sessions_.pop_front();
    session.release();
  }
}

}  // namespace sluice::server
