// Certificates for servers and clients of tests, made anew each time.
#pragma once

#include <filesystem>
#include <string>

namespace sluice::testing {

/// An authority with a certificate for servers and one for clients, and a stranger's certificate by nobody but itself;
/// all as PEM files in a folder. Throws std::runtime_error when OpenSSL cannot make them.
class Certificates {
 public:
  /// The only name in the server's certificate, so nobody takes it for that of 127.0.0.1.
  static constexpr const char* kServerName = "redis.test";

  explicit Certificates(std::filesystem::path folder);

  [[nodiscard]] std::string ca() const { return file("ca.crt"); }
  [[nodiscard]] std::string cert(const std::string& whose) const { return file(whose + ".crt"); }
  [[nodiscard]] std::string key(const std::string& whose) const { return file(whose + ".key"); }

  static constexpr const char* kServer = "server";
  static constexpr const char* kClient = "client";
  static constexpr const char* kStranger = "stranger";
  static constexpr const char* kLocal = "local";  ///< of a server that is called localhost

 private:
  [[nodiscard]] std::string file(const std::string& name) const { return (folder_ / name).string(); }

  const std::filesystem::path folder_;
};

}  // namespace sluice::testing
