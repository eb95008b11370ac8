#include "tests/integration/support/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cstdint>
#include <string>

#include "tests/integration/support/process.h"

namespace sluice::test {

namespace {

int connect_to_path(const std::string& path) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  path.copy(static_cast<char*>(to.sun_path), sizeof to.sun_path - 1);
  const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
  ::setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (::connect(made, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return made;
  ::close(made);
  return -1;
}

}  // namespace

int connect_to(const std::string& address) {
  if (address.starts_with("unix:")) return connect_to_path(address.substr(5));
  const std::size_t colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
  const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
  ::setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (::connect(made, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return made;
  ::close(made);
  return -1;
}

HttpClient::HttpClient(const std::string& address) : socket_(connect_to(address)) {}

HttpClient::~HttpClient() {
  if (socket_ >= 0) ::close(socket_);
}

void HttpClient::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the answer that does not come will tell
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool HttpClient::fill() {
  std::array<char, 16384> bytes{};
  const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), 0);
  if (count <= 0) return false;
  buffer_.append(bytes.data(), static_cast<std::size_t>(count));
  return true;
}

HttpAnswer HttpClient::receive() {
  std::size_t head_end = buffer_.find("\r\n\r\n");
  while (head_end == std::string::npos) {
    if (!fill()) return {};
    head_end = buffer_.find("\r\n\r\n");
  }
  HttpAnswer answer;
  const std::string head = buffer_.substr(0, head_end + 2);
  answer.status = std::stoi(head.substr(head.find(' ') + 1));
  for (std::size_t begin = head.find("\r\n") + 2; begin < head.size();) {
    const std::size_t end = head.find("\r\n", begin);
    const std::size_t colon = head.find(": ", begin);
    std::string name = head.substr(begin, colon - begin);
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    answer.fields[name] = head.substr(colon + 2, end - colon - 2);
    begin = end + 2;
  }
  const auto length = answer.fields.find("content-length");
  const std::size_t body = length == answer.fields.end() ? 0 : std::stoul(length->second);
  while (buffer_.size() < head_end + 4 + body) {
    if (!fill()) return {};
  }
  answer.body = buffer_.substr(head_end + 4, body);
  buffer_.erase(0, head_end + 4 + body);
  return answer;
}

HttpAnswer HttpClient::get(const std::string& path) {
  send("GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n");
  return receive();
}

HttpAnswer HttpClient::post(const std::string& path, std::string_view body) {
  send(post_request(path, body));
  return receive();
}

bool HttpClient::ended() {
  while (fill()) {
  }
  char byte = 0;
  return ::recv(socket_, &byte, 1, MSG_DONTWAIT) == 0;
}

std::string post_request(const std::string& path, std::string_view body) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string(body);
}

}  // namespace sluice::test
