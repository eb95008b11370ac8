#include "store/redis/session.h"

#include <algorithm>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <exception>
#include <string_view>

#include "base/log.h"

namespace sluice::store::redis {

namespace asio = boost::asio;
using boost::system::error_code;

Session::Session(asio::io_context& io, Client& client, Node& node, const Endpoint& endpoint)
    : io_(io), client_(&client), node_(node), endpoint_(endpoint), resolver_(io), socket_(io), timer_(io) {}

std::int64_t Session::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Session::start() {
  node_.listen(*this);
  pump();
}

void Session::stop() {
  if (client_ == nullptr) return;
  node_.forget(*this);
  client_ = nullptr;
  timer_.cancel();
  close_socket();
}

void Session::wake_up() {
  if (pump_posted_) return;
  pump_posted_ = true;
  asio::post(io_, [self = shared_from_this()] {
    self->pump_posted_ = false;
    if (self->client_ != nullptr) self->pump();
  });
}

// On any thread.
void Session::node_changed() {
  asio::post(io_, [self = shared_from_this()] {
    if (self->client_ == nullptr) return;
    self->client_->node_changed(now());
    self->pump();
  });
}

void Session::pump() {
  if (client_->wish() == Client::Wish::disconnect) {
    close_socket();
    client_->finish_disconnect();
  }
  if (connected_ && !writing_) client_->flush(now());
  if (client_->wish() == Client::Wish::connect) connect();
  if (connected_ && !writing_ && !client_->output().empty()) write();
  arm_timer();
}

void Session::connect() {
  client_->begin_connect(now());
  close_socket();
  targets_.clear();
  try {
    look_up();
  } catch (const std::exception& problem) {
    // No thread or memory for a look-up: tried again later, as if the server could not be reached.
    log::error("redis: cannot connect", {{"what", problem.what()}});
    targets_.clear();
    connect_next();
  }
}

void Session::look_up() {
  if (endpoint_.host.empty()) {
    targets_.emplace_back(asio::local::stream_protocol::endpoint(endpoint_.path));
    connect_next();
    return;
  }
  resolver_.async_resolve(endpoint_.host, std::to_string(endpoint_.port), asio::ip::resolver_base::numeric_service,
                          [self = shared_from_this(), generation = generation_](
                              error_code error, const asio::ip::tcp::resolver::results_type& found) {
                            if (self->client_ == nullptr || generation != self->generation_) return;
                            if (!error) {
                              for (const auto& entry : found) self->targets_.emplace_back(entry.endpoint());
                              std::reverse(self->targets_.begin(), self->targets_.end());
                            }
                            self->connect_next();
                          });
}

// Tries the last of the targets.
void Session::connect_next() {
  if (targets_.empty()) {
    close_socket();
    client_->closed(now());
    pump();
    return;
  }
  const Socket::endpoint_type target = targets_.back();
  targets_.pop_back();
  error_code ignored;
  socket_.close(ignored);
  socket_.async_connect(target, [self = shared_from_this(), generation = generation_](error_code error) {
    if (self->client_ == nullptr || generation != self->generation_) return;
    if (error) {
      self->connect_next();
    } else {
      self->opened();
    }
  });
}

void Session::opened() {
  if (!endpoint_.host.empty()) {
    error_code ignored;  // without them the connection still works
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    socket_.set_option(asio::socket_base::keep_alive(true), ignored);
    using Seconds = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
    using Interval = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
    socket_.set_option(Seconds(30), ignored);
    socket_.set_option(Interval(10), ignored);
  }
  connected_ = true;
  client_->connected(now());
  read();
  pump();
}

void Session::close_socket() {
  ++generation_;
  connected_ = false;
  writing_ = false;
  resolver_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

void Session::read() {
  socket_.async_read_some(asio::buffer(incoming_),
                          [self = shared_from_this(), generation = generation_](error_code error, std::size_t size) {
                            if (self->client_ == nullptr || generation != self->generation_) return;
                            if (error) {
                              self->close_socket();
                              self->client_->closed(now());
                            } else {
                              self->client_->received(std::string_view(self->incoming_.data(), size), now());
                              if (self->client_ == nullptr) return;
                              // Whatever the client wishes instead, pump() does first.
                              if (self->client_->wish() == Client::Wish::nothing) self->read();
                            }
                            self->pump();
                          });
}

void Session::write() {
  writing_ = true;
  outgoing_.clear();
  outgoing_.swap(client_->output());
  asio::async_write(socket_, asio::buffer(outgoing_),
                    [self = shared_from_this(), generation = generation_](error_code error, std::size_t) {
                      if (self->client_ == nullptr || generation != self->generation_) return;
                      self->writing_ = false;
                      if (error) {
                        self->close_socket();
                        self->client_->closed(now());
                      }
                      self->pump();
                    });
}

// One timer for everything; it is only ever set to an earlier time before it fires.
void Session::arm_timer() {
  const std::int64_t next = client_->next_wakeup();
  if (next >= armed_for_) return;
  armed_for_ = next;
  timer_.expires_at(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(next)));
  timer_.async_wait([self = shared_from_this()](error_code error) {
    if (error || self->client_ == nullptr) return;
    self->armed_for_ = Client::kNoWakeup;
    self->client_->wake(now());
    if (self->client_ != nullptr) self->pump();
  });
}

}  // namespace sluice::store::redis
