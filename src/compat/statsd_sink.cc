#include "compat/statsd_sink.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace sluice::compat {
namespace {

constexpr std::size_t kDatagram = 1432;  // fits an Ethernet frame
constexpr timeval kSendTimeout{.tv_sec = 1, .tv_usec = 0};

}  // namespace

StatsdSink::StatsdSink(const config::EnvoyOptions& options, std::function<Statistics()> read)
    : options_(options), read_(std::move(read)), text_(options), thread_([this] { run(); }) {}

StatsdSink::~StatsdSink() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  ends_.notify_all();
  thread_.join();
  disconnect();
}

void StatsdSink::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    ends_.wait_for(lock, options_.flush_interval, [this] { return ending_; });
    lock.unlock();
    flush();
    lock.lock();
  }
}

void StatsdSink::flush() {
  const std::vector<std::string> lines = text_.lines(read_());
  if (lines.empty()) return;
  const bool works = send_all(lines);
  if (works) text_.sent();
  if (works == !failing_) return;
  failing_ = !works;
  const std::string place = options_.statsd_host + ":" + std::to_string(options_.statsd_port);
  if (works) {
    log::info("statistics are sent again", {{"to", place}});
  } else {
    log::warn("cannot send statistics, trying again until it works", {{"to", place}});
  }
}

bool StatsdSink::send_all(const std::vector<std::string>& lines) {
  // As much as fits goes together.
  std::string packet;
  const auto send_packet = [&] {
    std::string_view rest = packet;
    while (!rest.empty()) {
      const ssize_t sent = ::send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    packet.clear();
    return true;
  };
  if (socket_ < 0 && !connect()) return false;
  for (const std::string& line : lines) {
    if (!packet.empty() && packet.size() + line.size() > kDatagram && !send_packet()) {
      disconnect();
      return false;
    }
    packet += line;
  }
  if (send_packet()) return true;
  disconnect();
  return false;
}

bool StatsdSink::connect() {
  addrinfo hints{};
  hints.ai_socktype = options_.statistics == config::EnvoyOptions::Statistics::dogstatsd ? SOCK_DGRAM : SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(options_.statsd_host.c_str(), std::to_string(options_.statsd_port).c_str(), &hints, &found) != 0) {
    return false;
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    socket_ = ::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
    if (socket_ < 0) continue;
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout, sizeof kSendTimeout);
    if (::connect(socket_, one->ai_addr, one->ai_addrlen) == 0) return true;
    disconnect();
  }
  return false;
}

void StatsdSink::disconnect() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

}  // namespace sluice::compat
