// Floor: the Redis protocol on epoll with one bucket a key in a hash map, as few lines as do the work: no limits, no
// time-outs, no expiry. One event loop. Arrays of bulk strings only: PING, and CL.THROTTLE key max_burst count period.
// usage: respsrv PORT
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

struct Hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

struct Connection {
  int descriptor = -1;
  std::string in;
  std::string out;
};

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  /// False: not whole.
  bool next() {
    const std::size_t begin = at_;
    std::int64_t count = 0;
    if (!line(count)) return back_to(begin);
    size_ = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t length = 0;
      if (!line(length)) return back_to(begin);
      const auto size = static_cast<std::size_t>(length);
      if (bytes_.size() - at_ < size + 2) return back_to(begin);
      if (size_ < words_.size()) words_[size_++] = bytes_.substr(at_, size);
      at_ += size + 2;
    }
    return true;
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::string_view word(std::size_t i) const { return words_[i]; }
  [[nodiscard]] std::size_t used() const { return at_; }

 private:
  bool line(std::int64_t& value) {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) return false;
    value = number(bytes_.substr(at_ + 1, end - at_ - 2));
    at_ = end + 1;
    return true;
  }
  bool back_to(std::size_t begin) {
    at_ = begin;
    return false;
  }
  std::string_view bytes_;
  std::size_t at_ = 0;
  std::array<std::string_view, 16> words_;
  std::size_t size_ = 0;
};

class Server {
 public:
  void serve(Connection& connection, std::string_view bytes, std::int64_t now) {
    if (!connection.in.empty()) {
      connection.in.append(bytes);
      bytes = connection.in;
    }
    Reader reader(bytes);
    while (reader.next()) {
      if (reader.size() < 5) {
        connection.out += "+PONG\r\n";
      } else {
        throttle(reader, now, connection.out);
      }
    }
    const std::string rest(bytes.substr(reader.used()));
    connection.in = rest;
  }

 private:
  void throttle(const Reader& reader, std::int64_t now, std::string& out) {
    const std::int64_t burst = number(reader.word(2)) + 1;
    const std::int64_t interval = number(reader.word(4)) * kSecond / std::max<std::int64_t>(1, number(reader.word(3)));
    auto bucket = buckets_.find(reader.word(1));
    if (bucket == buckets_.end()) bucket = buckets_.emplace(std::string(reader.word(1)), 0).first;
    const std::int64_t tolerance = interval * burst;
    const std::int64_t next = std::max(bucket->second, now) + interval;
    const bool allowed = next - now <= tolerance;
    if (allowed) bucket->second = next;
    const std::int64_t debt = std::max<std::int64_t>(0, bucket->second - now);
    out += "*5\r\n";
    put(out, allowed ? 0 : 1);
    put(out, burst);
    put(out, interval > 0 ? (tolerance - debt) / interval : 0);
    put(out, allowed ? -1 : (next - now - tolerance) / kSecond + 1);
    put(out, debt / kSecond + 1);
  }
  static void put(std::string& out, std::int64_t value) {
    std::array<char, 24> text{};
    char* end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    out.push_back(':');
    out.append(text.data(), end);
    out.append("\r\n");
  }
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> buckets_;
};

int listen_on(std::uint16_t port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(listener, 1024) != 0)
    return -1;
  return listener;
}

void watch(int poll, int descriptor, void* data) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = data;
  ::epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event);
}

void accept_all(int poll, int listener) {
  const int on = 1;
  for (int descriptor = 0; (descriptor = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK)) >= 0;) {
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    watch(poll, descriptor, new Connection{descriptor, {}, {}});
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::fputs("usage: respsrv PORT\n", stderr);
    return 2;
  }
  const int listener = listen_on(static_cast<std::uint16_t>(std::atoi(words[1])));
  const int poll = ::epoll_create1(0);
  if (listener < 0 || poll < 0) return 1;
  watch(poll, listener, nullptr);
  Server server;
  std::array<epoll_event, 128> events{};
  std::array<char, 65536> buffer{};
  for (;;) {
    const int ready = ::epoll_wait(poll, events.data(), static_cast<int>(events.size()), -1);
    const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
    for (int i = 0; i < ready; ++i) {
      auto* connection = static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (connection == nullptr) {
        accept_all(poll, listener);
        continue;
      }
      const ssize_t size = ::read(connection->descriptor, buffer.data(), buffer.size());
      if (size <= 0) {
        ::close(connection->descriptor);
        delete connection;
        continue;
      }
      server.serve(*connection, {buffer.data(), static_cast<std::size_t>(size)}, now);
      // The load reads what it asked for, so the socket always has room.
      if (::write(connection->descriptor, connection->out.data(), connection->out.size()) < 0) return 1;
      connection->out.clear();
    }
  }
}
