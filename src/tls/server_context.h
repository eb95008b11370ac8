// The certificates of a listener: what new connections are begun with, read again when they change.
#pragma once

#include <openssl/ssl.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "identity/watched_file.h"
#include "tls/channel.h"
#include "tls/server_options.h"

namespace sluice::tls {

/// TLS 1.2 and 1.3. Connections keep what they began with. Not thread-safe, but the channels it makes may be used on
/// any threads, as long as it is there.
class ServerContext {
 public:
  enum class Reload : std::uint8_t { unchanged, loaded, refused };

  /// Reads the files for the first time. `setting` names the group of settings in messages: "listen.grpc.tls". `alpn`:
  /// the protocol that is spoken, as clients name it ("h2"); empty: whatever they name. The error is a sentence that
  /// names setting and file, and how to mend it.
  [[nodiscard]] static Result<std::unique_ptr<ServerContext>> open(std::string setting, ServerOptions options,
                                                                   std::string_view alpn);
  ServerContext(const ServerContext&) = delete;
  ServerContext& operator=(const ServerContext&) = delete;
  ~ServerContext() = default;

  /// The server's end of a new connection; null when memory is out.
  [[nodiscard]] std::unique_ptr<Channel> accept() const;

  /// Reads the files again if they are others than those read last; to be called every second or so. Files that cannot
  /// be used leave the old ones in force, which is logged once for each state of them that lasts until the next call:
  /// a pair is seldom replaced in one instant. Cost: a stat of each.
  Reload look();
  /// Reads the files again; what is wrong with them is logged.
  Reload reload();
  /// When the certificate ends to be valid, in seconds since 1970. Thread-safe.
  [[nodiscard]] std::int64_t expires() const { return expires_.load(std::memory_order_relaxed); }

 private:
  struct Deleter {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  using Context = std::unique_ptr<SSL_CTX, Deleter>;
  using Stamps = std::array<identity::FileStamp, 3>;

  ServerContext(std::string setting, ServerOptions options, std::string_view alpn);
  [[nodiscard]] Stamps stamps() const;
  [[nodiscard]] std::optional<Error> load();
  [[nodiscard]] std::optional<Error> use_certificate(SSL_CTX& context, Stamps& seen, std::int64_t& expires) const;
  [[nodiscard]] std::optional<Error> use_client_authorities(SSL_CTX& context, Stamps& seen) const;
  [[nodiscard]] Result<std::string> read(std::string_view name, const std::string& path,
                                         identity::FileStamp& stamp) const;
  [[nodiscard]] Error wrong(std::string_view name, const std::string& path, std::string_view what) const;

  const std::string setting_;
  const ServerOptions options_;
  const std::string alpn_;  ///< with its length in front, as on the wire; empty: none
  Context context_;
  Stamps seen_{};          ///< of what was read last, whatever came of it
  std::string problem_;    ///< with what was read last; empty: none
  bool has_told_ = false;  ///< of that problem
  std::atomic<std::int64_t> expires_{0};
};

}  // namespace sluice::tls
