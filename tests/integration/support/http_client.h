// An HTTP/1.1 client for tests: raw bytes out, answers in.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace sluice::test {

/// A blocking socket, whose calls give up after kPatience; -1: nobody listens there.
[[nodiscard]] int connect_to(const std::string& address);

struct HttpAnswer {
  int status = 0;                             ///< 0: the connection ended before an answer
  std::map<std::string, std::string> fields;  ///< names in lower case
  std::string body;
};

/// One blocking connection; everything gives up after kPatience. Not thread-safe.
class HttpClient {
 public:
  /// `address` as the daemon logs it: "127.0.0.1:8080", "unix:/path".
  explicit HttpClient(const std::string& address);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  [[nodiscard]] bool connected() const { return socket_ >= 0; }
  void send(std::string_view bytes) const;
  [[nodiscard]] HttpAnswer receive();
  [[nodiscard]] HttpAnswer get(const std::string& path);
  [[nodiscard]] HttpAnswer post(const std::string& path, std::string_view body);
  /// Has the peer ended the connection, with nothing more to read? Waits for it.
  [[nodiscard]] bool ended();

 private:
  /// Reads more into buffer_; false at the end.
  bool fill();

  int socket_ = -1;
  std::string buffer_;
};

[[nodiscard]] std::string post_request(const std::string& path, std::string_view body);

}  // namespace sluice::test
