#include "load/connection_lane.h"

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <utility>

#include "load/grpc_protocol.h"
#include "load/http_protocol.h"

namespace sluice::load {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {
constexpr std::chrono::milliseconds kRest{100};
}

// What completions need to live on.
struct ConnectionLane::Link {
  explicit Link(asio::io_context& io) : resolver(io), socket(io), timer(io) {}
  tcp::resolver resolver;
  tcp::socket socket;
  asio::steady_timer timer;
  std::array<char, 65'536> incoming{};
  std::string outgoing;
};

ConnectionLane::ConnectionLane(asio::io_context& io, Lane::Owner& owner, Kind kind, std::string host, std::string port,
                               std::size_t most_in_flight)
    : io_(io), owner_(owner), host_(std::move(host)), port_(std::move(port)), most_(most_in_flight) {
  const std::string authority = (host_.find(':') == std::string::npos ? host_ : "[" + host_ + "]") + ":" + port_;
  if (kind == Kind::grpc) {
    protocol_ = std::make_unique<GrpcProtocol>(*this, authority);
  } else {
    protocol_ = std::make_unique<HttpProtocol>(*this, authority);
  }
  tickets_.reserve(most_);
}

ConnectionLane::~ConnectionLane() { stop(); }

void ConnectionLane::start() { connect(); }

void ConnectionLane::stop() {
  is_stopped_ = true;
  close();
}

void ConnectionLane::close() {
  is_up_ = false;
  if (const auto link = std::exchange(link_, nullptr)) {
    error_code ignored;
    link->resolver.cancel();
    link->socket.close(ignored);
    link->timer.cancel();
  }
}

void ConnectionLane::connect() {
  link_ = std::make_shared<Link>(io_);
  writing_ = false;
  write_posted_ = false;
  link_->resolver.async_resolve(
      host_, port_, [this, link = link_](error_code error, const tcp::resolver::results_type& found) {
        if (link != link_) return;
        if (error) {
          lost("cannot find " + host_ + ": " + error.message());
          return;
        }
        asio::async_connect(link->socket, found, [this, link](error_code failure, const tcp::endpoint&) {
          if (link != link_) return;
          if (failure) {
            lost("cannot connect to " + host_ + ":" + port_ + ": " + failure.message());
          } else {
            opened();
          }
        });
      });
}

void ConnectionLane::opened() {
  error_code ignored;
  link_->socket.set_option(tcp::no_delay(true), ignored);
  protocol_->open();
  is_up_ = true;
  read();
  write_soon();
  owner_.lane_ready();
}

void ConnectionLane::ask(Ticket ticket, std::string_view domain, const Descriptors& descriptors, std::uint64_t cost) {
  tickets_.push_back(ticket);
  protocol_->ask(ticket, domain, descriptors, cost);
  write_soon();
}

void ConnectionLane::answered(Ticket ticket, const Outcome& outcome) {
  const auto at = std::ranges::find(tickets_, ticket);
  if (at == tickets_.end()) return;
  *at = tickets_.back();
  tickets_.pop_back();
  owner_.answered(ticket, outcome);
}

void ConnectionLane::read() {
  link_->socket.async_read_some(
      asio::buffer(link_->incoming), [this, link = link_](error_code error, std::size_t size) {
        if (link != link_) return;
        if (error) {
          lost(error == asio::error::eof ? "the daemon closed the connection" : "connection lost: " + error.message());
          return;
        }
        const bool usable = protocol_->feed(std::string_view(link->incoming.data(), size));
        if (link != link_) return;
        if (!usable) {
          lost(protocol_->fault());
          return;
        }
        write_soon();
        read();
      });
}

// Not before all that is asked in this turn of the loop.
void ConnectionLane::write_soon() {
  if (write_posted_ || writing_) return;
  write_posted_ = true;
  asio::post(io_, [this, link = link_] {
    if (link != link_) return;
    write_posted_ = false;
    if (!writing_) write();
  });
}

void ConnectionLane::write() {
  link_->outgoing.clear();
  link_->outgoing.swap(protocol_->output());
  if (link_->outgoing.empty()) return;
  writing_ = true;
  asio::async_write(link_->socket, asio::buffer(link_->outgoing), [this, link = link_](error_code error, std::size_t) {
    if (link != link_) return;
    writing_ = false;
    // A reader will tell why.
    if (!error) write();
  });
}

void ConnectionLane::lost(const std::string& why) {
  close();
  for (const Ticket ticket : std::exchange(tickets_, {})) owner_.answered(ticket, {.error = why});
  owner_.lane_lost(why);
  if (is_stopped_) return;
  link_ = std::make_shared<Link>(io_);
  link_->timer.expires_after(kRest);
  link_->timer.async_wait([this, link = link_](error_code error) {
    if (!error && link == link_) connect();
  });
}

}  // namespace sluice::load
