#include "store/redis/link.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace sluice::store::redis {

Link::Link(boost::asio::io_context& io, Address address, Finder* finder, Login& login, Tls* tls, const Script& script,
           const Client::Options& options, std::shared_ptr<Node> node, Client::Owner& owner)
    : io_(io),
      address_(std::move(address)),
      finder_(finder),
      login_(login),
      node_(std::move(node)),
      client_(login.hello(), script, options, *node_, owner),
      session_(std::make_shared<Session>(io, client_, *this, tls)) {
  if (finder_ != nullptr) address_.reset();
}

void Link::start() {
  node_->listen(*this);
  session_->start();
}

void Link::stop() {
  if (std::exchange(stopped_, true)) return;
  node_->forget(*this);
  session_->stop();
}

// On any thread.
void Link::node_changed() {
  boost::asio::post(io_, [self = shared_from_this()] {
    if (self->stopped_) return;
    self->client_.node_changed(Session::now());
    self->session_->wake_up();
  });
}

void Link::locate(Found found) {
  (void)login_.refresh();
  if (finder_ == nullptr) {
    found(address_, {});
    return;
  }
  finder_->find([this, found = std::move(found)](const std::optional<Address>& address, std::string_view why) {
    address_ = address;
    client_.set_place(address ? address->to_text() : std::string());
    found(address, why);
  });
}

void Link::forget() {
  if (finder_ != nullptr) finder_->forget();
}

}  // namespace sluice::store::redis
