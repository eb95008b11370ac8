// rlsload asks a rate limit service as cheaply as can be: a closed loop of calls in flight on a few connections, in one
// thread, with requests encoded beforehand and answers looked at only as far as needed to count them. So the server is
// what limits the throughput. With --rate it is an open loop: calls are begun at their times, whatever is answered, and
// latency counts from these. Prints one JSON object.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view kUsage =
    "usage: rlsload [--target HOST:PORT] [--connections N] [--in-flight N] [--seconds S | --calls N]\n"
    "               [--rate CALLS_A_SECOND] [--domain NAME] [--key NAME] [--users N] [--cost N] [--pid PID]\n"
    "Prints calls, denied, errors, seconds, calls_per_second, p50_us, p99_us and, with --pid, server_cpu_us (the user\n"
    "and system time that the process PID took per call).\n";

struct Options {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8081;
  std::size_t connections = 4;
  std::size_t in_flight = 16;
  double seconds = 3;
  std::uint64_t calls = 0;  // 0: as many as fit into `seconds`
  double rate = 0;          // 0: a closed loop
  std::string domain = "bench";
  std::string key = "user";
  std::size_t users = 10'000;
  std::uint32_t cost = 0;
  long pid = 0;
};

[[noreturn]] void die(const std::string& message) {
  std::fprintf(stderr, "rlsload: %s\n", message.c_str());
  std::exit(1);
}

template <typename T>
T number(std::string_view name, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    die("--" + std::string(name) + " wants a number, not '" + std::string(text) + "'");
  }
  return value;
}

Options parse(std::span<char*> arguments) {
  Options options;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    std::string_view name = arguments[i];
    if (name == "--help") {
      std::fwrite(kUsage.data(), 1, kUsage.size(), stdout);
      std::exit(0);
    }
    if (!name.starts_with("--") || i + 1 == arguments.size()) die("unknown argument\n" + std::string(kUsage));
    name.remove_prefix(2);
    const std::string_view value = arguments[++i];
    if (name == "target") {
      const std::size_t colon = value.rfind(':');
      if (colon == std::string_view::npos) die("--target wants HOST:PORT");
      options.host = value.substr(0, colon);
      options.port = number<std::uint16_t>(name, value.substr(colon + 1));
    } else if (name == "connections") {
      options.connections = number<std::size_t>(name, value);
    } else if (name == "in-flight") {
      options.in_flight = number<std::size_t>(name, value);
    } else if (name == "seconds") {
      options.seconds = number<double>(name, value);
    } else if (name == "calls") {
      options.calls = number<std::uint64_t>(name, value);
    } else if (name == "rate") {
      options.rate = number<double>(name, value);
    } else if (name == "domain") {
      options.domain = value;
    } else if (name == "key") {
      options.key = value;
    } else if (name == "users") {
      options.users = number<std::size_t>(name, value);
    } else if (name == "cost") {
      options.cost = number<std::uint32_t>(name, value);
    } else if (name == "pid") {
      options.pid = number<long>(name, value);
    } else {
      die("unknown argument\n" + std::string(kUsage));
    }
  }
  if (options.connections == 0 || options.in_flight == 0 || options.in_flight > 1000 || options.users == 0) {
    die("--connections, --in-flight (up to 1000) and --users have to be at least 1");
  }
  if (options.rate < 0 || options.rate > 1e7) die("--rate has to be 0 … 10000000");
  return options;
}

/// User and system time of a process.
double cpu_seconds(long pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) die("no process " + std::to_string(pid));
  // The second field is the name in parentheses, which may hold spaces; utime and stime are fields 14 and 15.
  const char* at = line.c_str() + line.rfind(')') + 1;
  unsigned long long user = 0;
  unsigned long long system = 0;
  if (std::sscanf(at, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system) != 2) {
    die("cannot read the times of process " + std::to_string(pid));
  }
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// Counts durations in buckets that are 1 % wide.
class Histogram {
 public:
  void add(std::int64_t nanoseconds) {
    const auto bucket =
        static_cast<std::size_t>(std::log(std::max<double>(1, static_cast<double>(nanoseconds))) / width_);
    ++buckets_[std::min(bucket, buckets_.size() - 1)];
  }
  [[nodiscard]] double microseconds(double quantile) const {
    std::uint64_t total = 0;
    for (const std::uint64_t n : buckets_) total += n;
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      seen += buckets_[i];
      if (seen > 0 && static_cast<double>(seen) >= quantile * static_cast<double>(total)) {
        return std::exp(static_cast<double>(i) * width_) / 1000;
      }
    }
    return 0;
  }

 private:
  double width_ = std::log(1.01);
  std::array<std::uint64_t, 2800> buckets_{};
};

std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// HTTP/2, as much as a client of one method needs.

constexpr std::size_t kFrameHead = 9;
enum FrameType : std::uint8_t {
  data = 0,
  headers = 1,
  rst_stream = 3,
  settings = 4,
  ping = 6,
  goaway = 7,
  window_update = 8
};
constexpr std::uint8_t kEndStream = 1;
constexpr std::uint8_t kAck = 1;
constexpr std::uint8_t kEndHeaders = 4;
constexpr std::uint8_t kPadded = 8;

void put_uint32(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> static_cast<unsigned>(shift));
}

void put_frame(std::string& out, FrameType type, std::uint8_t flags, std::uint32_t stream, std::string_view payload) {
  const std::size_t size = payload.size();
  const std::array<char, kFrameHead> head{
      static_cast<char>(size >> 16U),   static_cast<char>(size >> 8U),   static_cast<char>(size),
      static_cast<char>(type),          static_cast<char>(flags),        static_cast<char>(stream >> 24U),
      static_cast<char>(stream >> 16U), static_cast<char>(stream >> 8U), static_cast<char>(stream)};
  out.append(head.data(), head.size());
  out.append(payload);
}

std::uint32_t get_uint32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes.substr(0, 4)) value = value << 8U | static_cast<unsigned char>(byte);
  return value;
}

/// A header field that the server's HPACK table keeps; name by index in the static table, or 0 and by text.
void put_indexing(std::string& out, std::uint8_t name_index, std::string_view name, std::string_view value) {
  out += static_cast<char>(0x40U | name_index);
  if (name_index == 0) {
    out += static_cast<char>(name.size());
    out += name;
  }
  out += static_cast<char>(value.size());
  out += value;
}

/// The head of a connection's first call, whose fields the later ones refer to.
std::string first_head(const std::string& authority) {
  std::string block = "\x83\x86";  // :method POST, :scheme http
  put_indexing(block, 4, ":path", "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit");
  put_indexing(block, 1, ":authority", authority);
  put_indexing(block, 31, "content-type", "application/grpc");
  put_indexing(block, 0, "te", "trailers");
  put_indexing(block, 0, "grpc-timeout", "1S");
  put_indexing(block, 58, "user-agent", "rlsload");
  return block;
}
constexpr std::string_view kNextHead = "\x83\x86\xC3\xC2\xC1\xC0\xBF\xBE";

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>(value | 0x80U);
  out += static_cast<char>(value);
}

void put_field(std::string& out, std::uint8_t field, std::string_view bytes) {
  out += static_cast<char>(field << 3U | 2U);
  put_varint(out, bytes.size());
  out += bytes;
}

/// A RateLimitRequest of one descriptor with one entry, as a gRPC message.
std::string make_request(const Options& options, std::size_t user) {
  std::string entry;
  put_field(entry, 1, options.key);
  put_field(entry, 2, "user-" + std::to_string(user));
  std::string descriptor;
  put_field(descriptor, 1, entry);
  std::string request;
  put_field(request, 1, options.domain);
  put_field(request, 2, descriptor);
  if (options.cost != 0) {
    request += static_cast<char>(3U << 3U);
    put_varint(request, options.cost);
  }
  std::string message(1, '\0');
  put_uint32(message, static_cast<std::uint32_t>(request.size()));
  return message + request;
}

/// What all connections have counted.
struct Tally {
  std::uint64_t begun = 0;
  std::uint64_t ended = 0;
  std::uint64_t denied = 0;
  std::uint64_t errors = 0;
  Histogram latency;
};

class Connection {
 public:
  Connection(const Options& options, const std::vector<std::string>& requests, std::size_t first, Tally& tally)
      : options_(options), requests_(requests), next_request_(first), tally_(tally), calls_(kSlots) {
    connect_now();
    // No push; a large window, so that the server is never held up.
    output_ = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    std::string payload;
    payload += std::string_view("\0\2", 2);
    put_uint32(payload, 0);
    put_frame(output_, settings, 0, 0, payload);
    grant(kWindow - 65'535);
  }
  ~Connection() { close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] int socket() const { return socket_; }
  [[nodiscard]] std::size_t open() const { return open_; }

  /// False: all places are taken, or the server's window is full.
  bool begin_call(std::int64_t time) {
    const std::string& request = requests_[next_request_];
    if (open_ >= options_.in_flight || static_cast<std::int64_t>(request.size()) > window_) return false;
    while (call(next_stream_).stream != 0) next_stream_ += 2;  // a call begun long ago still has its place
    call(next_stream_) = {.stream = next_stream_, .begun = time, .code = 0};
    put_frame(output_, headers, kEndHeaders, next_stream_,
              next_stream_ == 1 ? first_head(options_.host + ':' + std::to_string(options_.port)) : kNextHead);
    put_frame(output_, data, kEndStream, next_stream_, request);
    window_ -= static_cast<std::int64_t>(request.size());
    next_request_ = next_request_ + 1 == requests_.size() ? 0 : next_request_ + 1;
    next_stream_ += 2;
    ++open_;
    ++tally_.begun;
    return true;
  }

  /// False: the socket takes no more for now.
  bool send() {
    while (sent_ < output_.size()) {
      const ssize_t n = ::send(socket_, output_.data() + sent_, output_.size() - sent_, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return false;
      if (n < 0) die(std::string("cannot send: ") + std::strerror(errno));
      sent_ += static_cast<std::size_t>(n);
    }
    output_.clear();
    sent_ = 0;
    return true;
  }

  void receive() {
    for (;;) {
      const ssize_t n = recv(socket_, input_.data() + filled_, input_.size() - filled_, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n < 0) die(std::string("cannot receive: ") + std::strerror(errno));
      if (n == 0) die("the server closed a connection");
      const bool is_short = filled_ + static_cast<std::size_t>(n) < input_.size();
      filled_ += static_cast<std::size_t>(n);
      time_ = now();
      read_frames();
      if (is_short) return;
    }
  }

 private:
  static constexpr std::size_t kSlots = 4096;
  static constexpr std::uint32_t kWindow = 1U << 30U;

  struct Call {
    std::uint32_t stream = 0;  // 0: the place is free
    std::int64_t begun = 0;
    char code = 0;  // overall_code of the answer
  };

  Call& call(std::uint32_t stream) { return calls_[(stream >> 1U) % kSlots]; }

  void connect_now() {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    if (socket_ < 0) die(std::string("cannot make a socket: ") + std::strerror(errno));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(options_.port);
    if (inet_pton(AF_INET, options_.host.c_str(), &address.sin_addr) != 1) die("--target wants an IPv4 address");
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      die("cannot connect to " + options_.host + ':' + std::to_string(options_.port) + ": " + std::strerror(errno));
    }
    const int one = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(socket_, F_SETFL, O_NONBLOCK);
  }

  void grant(std::uint32_t size) {
    std::string payload;
    put_uint32(payload, size);
    put_frame(output_, window_update, 0, 0, payload);
  }

  void read_frames() {
    std::size_t at = 0;
    while (filled_ - at >= kFrameHead) {
      const std::string_view head(input_.data() + at, kFrameHead);
      const std::size_t size = get_uint32(head) >> 8U;
      if (kFrameHead + size > input_.size()) die("the server sent a frame that is too large");
      if (filled_ - at < kFrameHead + size) break;
      on_frame(static_cast<FrameType>(head[3]), static_cast<std::uint8_t>(head[4]),
               get_uint32(head.substr(5)) & 0x7FFF'FFFFU, {input_.data() + at + kFrameHead, size});
      at += kFrameHead + size;
    }
    filled_ -= at;
    std::memmove(input_.data(), input_.data() + at, filled_);
  }

  void on_frame(FrameType type, std::uint8_t flags, std::uint32_t stream, std::string_view payload) {
    switch (type) {
      case data: {
        taken_ += payload.size();
        if (taken_ > kWindow / 2) {
          grant(static_cast<std::uint32_t>(taken_));
          taken_ = 0;
        }
        if ((flags & kPadded) != 0) die("the server pads its frames");
        // The first field of the message is overall_code.
        if (Call& place = call(stream); payload.size() >= 7 && payload[5] == 8) place.code = payload[6];
        if ((flags & kEndStream) != 0) end_call(stream);
        break;
      }
      case headers:
        if ((flags & kEndStream) != 0) end_call(stream);
        break;
      case rst_stream:
        end_call(stream);
        break;
      case settings:
        if ((flags & kAck) == 0) put_frame(output_, settings, kAck, 0, {});
        break;
      case ping:
        if ((flags & kAck) == 0) put_frame(output_, ping, kAck, 0, payload);
        break;
      case goaway:
        die("the server said GOAWAY");
      case window_update:
        if (stream == 0) window_ += get_uint32(payload);
        break;
    }
  }

  void end_call(std::uint32_t stream) {
    Call& ended = call(stream);
    if (ended.stream != stream) return;
    tally_.latency.add(time_ - ended.begun);
    if (ended.code == 2) {
      ++tally_.denied;
    } else if (ended.code != 1) {
      ++tally_.errors;
    }
    ++tally_.ended;
    --open_;
    ended = {};
  }

  const Options& options_;
  const std::vector<std::string>& requests_;
  std::size_t next_request_;
  Tally& tally_;
  std::vector<Call> calls_;
  int socket_ = -1;
  std::uint32_t next_stream_ = 1;
  std::size_t open_ = 0;
  std::int64_t window_ = 65'535;
  std::uint64_t taken_ = 0;
  std::int64_t time_ = 0;
  std::string output_;
  std::size_t sent_ = 0;
  std::array<char, 65'536> input_{};
  std::size_t filled_ = 0;
};

/// When calls are due.
class Plan {
 public:
  Plan(const Options& options, std::int64_t start)
      : rate_(options.rate),
        start_(start),
        end_(start + static_cast<std::int64_t>(options.seconds * 1e9)),
        budget_(options.calls == 0 ? UINT64_MAX : options.calls) {}

  /// No call is begun from now on.
  void end(std::uint64_t begun) { budget_ = begun; }
  [[nodiscard]] bool is_over(std::uint64_t begun) const { return begun >= budget_; }
  [[nodiscard]] bool has_time_left(std::int64_t time) const { return time < end_; }
  [[nodiscard]] bool is_due(std::uint64_t begun, std::int64_t time) const {
    return !is_over(begun) && (rate_ == 0 || at(begun) <= time);
  }
  /// When the next call after `begun` ones begins, as it is counted.
  [[nodiscard]] std::int64_t begins(std::uint64_t begun, std::int64_t time) const {
    return rate_ == 0 ? time : at(begun);
  }
  /// How long there is nothing to begin.
  [[nodiscard]] timespec pause(std::uint64_t begun, std::int64_t time) const {
    constexpr std::int64_t longest = 100'000'000;
    const std::int64_t left = rate_ == 0 ? longest : std::clamp<std::int64_t>(at(begun) - time, 0, longest);
    return {.tv_sec = 0, .tv_nsec = left};
  }

 private:
  [[nodiscard]] std::int64_t at(std::uint64_t call) const {
    return start_ + static_cast<std::int64_t>(static_cast<double>(call) / rate_ * 1e9);
  }
  double rate_;
  std::int64_t start_;
  std::int64_t end_;
  std::uint64_t budget_;
};

/// Asks until `seconds` are over or `calls` have been made, and waits for the last answers.
double run(const Options& options, std::span<const std::unique_ptr<Connection>> connections, Tally& tally) {
  const int poll = epoll_create1(0);
  for (const auto& connection : connections) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.ptr = connection.get();
    epoll_ctl(poll, EPOLL_CTL_ADD, connection->socket(), &event);
  }
  const std::int64_t start = now();
  Plan plan(options, start);
  std::array<epoll_event, 64> events{};
  for (;;) {
    const timespec pause = plan.pause(tally.begun, now());
    const int ready = epoll_pwait2(poll, events.data(), static_cast<int>(events.size()), &pause, nullptr);
    const std::int64_t time = now();
    if (options.calls == 0 && !plan.has_time_left(time)) plan.end(tally.begun);
    for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(std::max(ready, 0)))) {
      auto& connection = *static_cast<Connection*>(event.data.ptr);
      connection.receive();
      while (options.rate == 0 && plan.is_due(tally.begun, time) && connection.begin_call(time)) continue;
      connection.send();
    }
    // At a rate, connections take turns; one that has no place passes its turn on.
    std::size_t without_place = 0;
    while (options.rate != 0 && plan.is_due(tally.begun, time) && without_place < connections.size()) {
      Connection& connection = *connections[(tally.begun + without_place) % connections.size()];
      without_place = connection.begin_call(plan.begins(tally.begun, time)) ? 0 : without_place + 1;
      connection.send();
    }
    if (plan.is_over(tally.begun) && tally.ended == tally.begun) break;
    if (options.calls == 0 && !plan.has_time_left(time - 5'000'000'000)) die("calls are left without an answer");
  }
  close(poll);
  return static_cast<double>(now() - start) / 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse({argv, static_cast<std::size_t>(argc)});
  std::vector<std::string> requests;
  requests.reserve(options.users);
  for (std::size_t i = 0; i < options.users; ++i) requests.push_back(make_request(options, i));

  Tally tally;
  std::vector<std::unique_ptr<Connection>> connections;
  for (std::size_t i = 0; i < options.connections; ++i) {
    const std::size_t first = i * requests.size() / options.connections;
    connections.push_back(std::make_unique<Connection>(options, requests, first, tally));
  }
  const double cpu_before = options.pid == 0 ? 0 : cpu_seconds(options.pid);
  prctl(PR_SET_TIMERSLACK, 1000UL);  // calls begin within a µs of their times
  const double seconds = run(options, connections, tally);

  const auto calls = static_cast<double>(tally.ended);
  std::printf(
      R"({"calls":%llu,"denied":%llu,"errors":%llu,"seconds":%.3f,"calls_per_second":%.0f,"p50_us":%.1f,"p99_us":%.1f)",
      static_cast<unsigned long long>(tally.ended), static_cast<unsigned long long>(tally.denied),
      static_cast<unsigned long long>(tally.errors), seconds, calls / seconds, tally.latency.microseconds(0.5),
      tally.latency.microseconds(0.99));
  if (options.pid != 0) std::printf(R"(,"server_cpu_us":%.3f)", (cpu_seconds(options.pid) - cpu_before) * 1e6 / calls);
  std::printf("}\n");
  return tally.errors == 0 ? 0 : 1;
}
