// What TLS to Redis needs: which authorities are trusted, who we are, whom we expect.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/redis/file_stamp.h"
#include "store/redis/notices.h"
#include "store/redis/tls_files.h"

namespace sluice::store::redis {

/// Keeps the context for connections, and makes it anew when one of its files has changed. Not thread-safe.
class Tls {
 public:
  using Context = std::shared_ptr<boost::asio::ssl::context>;

  /// Fails when a file cannot be read or does not hold what it should; the error names it. `notices`: as of Login.
  [[nodiscard]] static Result<std::unique_ptr<Tls>> create(const TlsFiles& files, Notices* notices = nullptr);

  /// To be asked before each connection. When the files have changed to something that cannot be used, the old ones
  /// stay in force, and that is logged.
  [[nodiscard]] Context context();
  /// What the server's certificate must name, beside being of a trusted authority: this, or else the host asked for.
  [[nodiscard]] const std::string& server_name() const { return files_.server_name; }
  [[nodiscard]] bool verifies_name() const { return files_.verify && files_.verify_name; }
  /// Do we have a certificate to show?
  [[nodiscard]] bool has_certificate() const { return !files_.cert.empty(); }
  /// What the names of the settings begin with that all this comes from: "store.redis.tls".
  [[nodiscard]] const std::string& setting() const { return files_.setting; }

 private:
  Tls(TlsFiles files, Notices* notices) : files_(std::move(files)), notices_(notices) {}

  [[nodiscard]] std::vector<std::optional<FileStamp>> stamps() const;
  [[nodiscard]] Result<Context> load() const;

  const TlsFiles files_;
  Notices* const notices_;
  std::vector<std::optional<FileStamp>> loaded_;
  Context context_;
};

}  // namespace sluice::store::redis
