#include "queue/admit_load.h"

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::bench {
namespace {

using Steady = std::chrono::steady_clock;
using Tcp = boost::asio::ip::tcp;
using boost::system::error_code;

/// What all connections share.
struct Tally {
  std::size_t wanted = 0;
  std::vector<double> latencies;
  std::string wrong;
};

class Client : public std::enable_shared_from_this<Client> {
 public:
  Client(boost::asio::io_context& io, Tally& tally, std::string request)
      : socket_(io), tally_(tally), request_(std::move(request)) {}
  void start(std::uint16_t port) {
    socket_.connect({boost::asio::ip::address_v4::loopback(), port});
    socket_.set_option(Tcp::no_delay(true));
    send();
  }

 private:
  void send() {
    if (tally_.latencies.size() >= tally_.wanted || !tally_.wrong.empty()) return;
    begin_ = Steady::now();
    text_.clear();
    boost::asio::async_write(socket_, boost::asio::buffer(request_),
                             [self = shared_from_this()](const error_code& error, std::size_t) {
                               if (error) self->tally_.wrong = error.message();
                               if (!error) self->receive();
                             });
  }
  void receive() {
    socket_.async_read_some(boost::asio::buffer(bytes_),
                            [self = shared_from_this()](const error_code& error, std::size_t size) {
                              if (error) {
                                self->tally_.wrong = error.message();
                                return;
                              }
                              self->text_.append(self->bytes_.data(), size);
                              self->read();
                            });
  }
  void read() {
    const std::size_t head = text_.find("\r\n\r\n");
    constexpr std::string_view name = "Content-Length: ";
    const std::size_t length = text_.find(name);
    if (head == std::string::npos || text_.size() < head + 4 + std::stoul(text_.substr(length + name.size()))) {
      receive();
      return;
    }
    if (text_.starts_with("HTTP/1.1 202")) {
      tally_.latencies.push_back(std::chrono::duration<double, std::milli>(Steady::now() - begin_).count());
    } else if (!text_.starts_with("HTTP/1.1 200")) {
      tally_.wrong = text_;
    }
    send();
  }

  Tcp::socket socket_;
  Tally& tally_;
  const std::string request_;
  std::array<char, 4096> bytes_{};
  std::string text_;
  Steady::time_point begin_;
};

}  // namespace

Loop admit_over_http(std::uint16_t port, std::size_t count, std::size_t connections) {
  boost::asio::io_context io(1);
  Tally tally;
  tally.wanted = count;
  for (std::size_t i = 0; i < connections; ++i) {
    const std::string body = R"({"domain":"shop","descriptors":[{"to":"orders"}],"key":"k)" + std::to_string(i) +
                             R"(","method":"POST","path":"/orders","body":")" + std::string(100, 'x') + "\"}";
    std::make_shared<Client>(
        io, tally,
        "POST /v1/admit HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: " +
            std::to_string(body.size()) + "\r\n\r\n" + body)
        ->start(port);
  }
  const auto begin = Steady::now();
  io.run();
  if (!tally.wrong.empty()) throw std::runtime_error("POST /v1/admit: " + tally.wrong);
  return summary_of(std::move(tally.latencies), std::chrono::duration<double>(Steady::now() - begin).count());
}

}  // namespace sluice::bench
