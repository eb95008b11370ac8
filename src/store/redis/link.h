// A client with all that it needs to live: its session, its breaker, its server's address.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>

#include "store/redis/client.h"
#include "store/redis/login.h"
#include "store/redis/machine.h"
#include "store/redis/node.h"
#include "store/redis/session.h"
#include "store/redis/tls.h"

namespace sluice::store::redis {

/// Everything happens on the thread of `io`. Kept alive by what is pending until stop() and its end.
class Link final : public std::enable_shared_from_this<Link>, public Node::Listener, public Locator {
 public:
  /// Where the server is, when that is not always the same. Asked before each connection.
  class Finder {
   public:
    virtual void find(Locator::Found found) = 0;
    virtual void forget() = 0;

   protected:
    ~Finder() = default;
  };

  /// References must outlive stop(); `tls` may be null. With a finder the address means nothing.
  Link(boost::asio::io_context& io, Address address, Finder* finder, Login& login, Tls* tls, const Script& script,
       const Client::Options& options, std::shared_ptr<Node> node, Client::Owner& owner);

  void start();
  void stop();
  /// To be called after the client was given something to do.
  void wake_up() { session_->wake_up(); }

  [[nodiscard]] Client& client() { return client_; }
  [[nodiscard]] const Client& client() const { return client_; }
  [[nodiscard]] Node& node() { return *node_; }
  /// Where it last connected to, or tried to.
  [[nodiscard]] const std::optional<Address>& address() const { return address_; }

  void node_changed() override;
  void locate(Found found) override;
  void forget() override;

 private:
  boost::asio::io_context& io_;
  std::optional<Address> address_;
  Finder* finder_;
  Login& login_;
  const std::shared_ptr<Node> node_;
  bool stopped_ = false;
  Client client_;
  std::shared_ptr<Session> session_;
};

}  // namespace sluice::store::redis
