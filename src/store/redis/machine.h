// What speaks a protocol over a connection, without a socket and without a clock.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "store/redis/url.h"

namespace sluice::store::redis {

/// Every `now` is steady time in ns. A session carries out what wish() says, calls flush() when it is free to write,
/// and tells what happens. Not thread-safe.
class Machine {
 public:
  /// What the session should do now.
  enum class Wish : std::uint8_t { nothing, connect, disconnect };
  static constexpr std::int64_t kNoWakeup = std::numeric_limits<std::int64_t>::max();

  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  [[nodiscard]] virtual Wish wish() const = 0;
  virtual void begin_connect(std::int64_t now) = 0;
  virtual void finish_disconnect() = 0;
  virtual void connected(std::int64_t now) = 0;
  virtual void received(std::string_view bytes, std::int64_t now) = 0;
  /// The connection could not be made, or is gone. `detail`: why, if it is known and tells more than that.
  virtual void closed(std::int64_t now, std::string_view detail) = 0;
  /// The session is free: puts what may leave now into output().
  virtual void flush(std::int64_t now) = 0;
  /// Bytes to be written; the session takes them away.
  [[nodiscard]] virtual std::string& output() = 0;
  /// When wake() is to be called next.
  [[nodiscard]] virtual std::int64_t next_wakeup() const = 0;
  virtual void wake(std::int64_t now) = 0;
  /// What a connection waits for that is not open yet, in words; told before wake().
  void set_awaited(std::string what) { awaited_ = std::move(what); }

 protected:
  ~Machine() = default;
  [[nodiscard]] const std::string& awaited() const { return awaited_; }

 private:
  std::string awaited_;
};

/// Tells a session where its server is.
class Locator {
 public:
  /// Nothing: it is not known now, which is as if it could not be reached; `why`, when that tells more.
  using Found = std::function<void(const std::optional<Address>& address, std::string_view why)>;
  /// Calls `found` once, now or later; not any more when it is asked again, or to forget.
  virtual void locate(Found found) = 0;
  virtual void forget() {}

 protected:
  ~Locator() = default;
};

}  // namespace sluice::store::redis
