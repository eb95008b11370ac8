#include "store/redis/session.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <string_view>
#include <utility>

namespace sluice::store::redis {

namespace asio = boost::asio;
using boost::system::error_code;

Session::Session(asio::io_context& io, Machine& machine, Locator& locator, Tls* tls)
    : io_(io), machine_(&machine), locator_(locator), tls_(tls), timer_(io) {}

std::int64_t Session::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Session::stop() {
  if (machine_ == nullptr) return;
  machine_ = nullptr;
  locator_.forget();
  timer_.cancel();
  close_wire();
}

void Session::wake_up() {
  if (pump_posted_) return;
  pump_posted_ = true;
  asio::post(io_, [self = shared_from_this()] {
    self->pump_posted_ = false;
    if (self->machine_ != nullptr) self->pump();
  });
}

void Session::pump() {
  if (machine_->wish() == Machine::Wish::disconnect) {
    close_wire();
    machine_->finish_disconnect();
  }
  if (is_open_ && !writing_) machine_->flush(now());
  if (machine_->wish() == Machine::Wish::connect) connect();
  if (machine_ == nullptr) return;
  if (is_open_ && !writing_ && !machine_->output().empty()) {
    writing_ = true;
    wire_->write(machine_->output());
  }
  arm_timer();
}

void Session::connect() {
  machine_->begin_connect(now());
  close_wire();
  // The answer may come within this call or much later.
  locator_.locate(
      [self = shared_from_this(), attempt = attempt_](const std::optional<Address>& address, std::string_view why) {
        if (self->machine_ != nullptr && attempt == self->attempt_) self->open_wire(address, why);
      });
}

void Session::open_wire(const std::optional<Address>& address, std::string_view why) {
  if (!address) {
    // Not within what the machine has just called.
    asio::post(io_, [self = shared_from_this(), attempt = attempt_, detail = std::string(why)] {
      if (self->machine_ != nullptr && attempt == self->attempt_) self->wire_failed(detail);
    });
    return;
  }
  wire_ = std::make_shared<Wire>(io_, *this);
  wire_->open(*address, address->host.empty() ? nullptr : tls_);
}

void Session::close_wire() {
  ++attempt_;
  is_open_ = false;
  writing_ = false;
  if (wire_ != nullptr) std::exchange(wire_, nullptr)->close();
}

void Session::wire_opened() {
  is_open_ = true;
  machine_->connected(now());
  pump();
}

void Session::wire_read(std::string_view bytes) {
  machine_->received(bytes, now());
  if (machine_ != nullptr) pump();
}

void Session::wire_written() {
  writing_ = false;
  pump();
}

void Session::wire_failed(std::string_view why) {
  const std::string detail(why);
  close_wire();
  machine_->closed(now(), detail);
  if (machine_ != nullptr) pump();
}

// One timer for everything; it is only ever set to an earlier time before it fires.
void Session::arm_timer() {
  const std::int64_t next = machine_->next_wakeup();
  if (next >= armed_for_) return;
  armed_for_ = next;
  timer_.expires_at(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(next)));
  timer_.async_wait([self = shared_from_this()](error_code error) {
    if (error || self->machine_ == nullptr) return;
    self->armed_for_ = Machine::kNoWakeup;
    if (!self->is_open_) self->machine_->set_awaited(self->wire_ != nullptr ? self->wire_->awaited() : std::string());
    self->machine_->wake(now());
    if (self->machine_ != nullptr) self->pump();
  });
}

}  // namespace sluice::store::redis
