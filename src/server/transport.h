// The bytes of one connection, whatever carries them: a socket, plain or with TLS.
#pragma once

#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "server/worker.h"
#include "tls/channel.h"

namespace sluice::server {

/// How many connections of a listener are open. Written by the listener's thread and by the workers'.
using OpenCount = std::atomic<std::uint64_t>;

/// Counts its connection as open for as long as it lives. Not thread-safe: all of it happens on the worker's thread,
/// the callbacks, too. Whoever owns it keeps it until all that it waits for has been called back; close() sees to
/// that. Nothing throws.
class Transport {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using ErrorCode = boost::system::error_code;

  /// `socket` must be non-blocking and of the worker's io_context. `open`: counted up already; null: nobody counts.
  /// `tls`: null: the bytes are plain.
  Transport(Worker& worker, Socket socket, OpenCount* open = nullptr, std::unique_ptr<tls::Channel> tls = nullptr);
  Transport(Transport&& other) noexcept = default;
  Transport& operator=(Transport&&) = delete;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  ~Transport() = default;

  /// Calls `done(error, bytes)` once, later, with what has come: an error (eof at the end) or at least one byte. The
  /// bytes are good until `done` returns; they may lie in `room`, which many connections may share.
  template <typename Done>
  void async_read(std::span<char> room, Done done) {
    if (tls_ != nullptr) {
      read_tls(room, std::move(done));
      return;
    }
    make_input();
    socket_.async_read_some(boost::asio::buffer(input_.get(), input_size_),
                            [this, room, done = std::move(done)](const ErrorCode& error, std::size_t size) mutable {
                              done(error, error ? std::string_view() : with_more(room, size));
                            });
  }

  /// Calls `done(error)` when there is something to read, which stays where it is.
  template <typename Done>
  void async_wait_readable(Done done) {
    if (tls_ != nullptr && tls_->has_pending()) {
      boost::asio::post(socket_.get_executor(), [done = std::move(done)]() mutable { done(ErrorCode()); });
    } else {
      socket_.async_wait(Socket::wait_read, std::move(done));
    }
  }
  template <typename Done>
  void async_wait_writable(Done done) {
    socket_.async_wait(wait_of_write_, std::move(done));
  }
  /// Calls `done(error)` when the connection may be used; at once, on this stack, when it is plain. After an error
  /// failure() says more.
  template <typename Done>
  void async_handshake(Done done) {
    if (tls_ == nullptr) {
      done(ErrorCode());
      return;
    }
    const tls::Step step = tls_->shake_hands();
    if (step == tls::Step::wants_readable || step == tls::Step::wants_writable) {
      socket_.async_wait(wait_for(step), [this, done = std::move(done)](const ErrorCode& error) mutable {
        if (error) {
          done(error);
        } else {
          async_handshake(std::move(done));
        }
      });
    } else {
      done(step == tls::Step::done ? ErrorCode() : ErrorCode(boost::asio::error::connection_refused));
    }
  }

  /// Sends what the peer takes now, at least one byte of it; would_block: nothing, wait until it is writable and offer
  /// the same bytes again.
  std::size_t write_some(std::string_view bytes, ErrorCode& error);

  enum class Peek : std::uint8_t { nothing, bytes, ended };
  /// What is there to read?
  [[nodiscard]] Peek peek();
  /// Has the peer sent bytes that nobody has taken from the socket yet? With TLS, too.
  [[nodiscard]] bool has_arrived();

  /// What is written from now on leaves with the end of sending: who gets it can see that end before it asks again.
  void cork();
  /// Tells the peer that no more comes.
  void shutdown_send();
  /// The handshake has failed: from now on bytes are what the socket brings.
  void drop_tls() { tls_.reset(); }
  /// Ends the connection and calls back whoever waits, with an error.
  void close();

  [[nodiscard]] boost::asio::any_io_executor executor() { return socket_.get_executor(); }
  [[nodiscard]] bool is_open() const { return socket_.is_open(); }
  /// The address of the other end, without its port; empty: it has none, or has gone.
  [[nodiscard]] std::string peer_address() const;
  [[nodiscard]] bool has_tls() const { return tls_ != nullptr; }
  /// Has the peer shown a certificate by an authority that is trusted here?
  [[nodiscard]] bool is_certified() const { return tls_ != nullptr && tls_->has_client_certificate(); }
  /// Why the handshake failed, in words.
  [[nodiscard]] std::string failure() const { return tls_ != nullptr ? tls_->reason() : std::string(); }

 private:
  // What is read into; when it has been filled, the rest goes into the reader's room. It is as large as what came last
  // makes likely, so that idle connections hold little.
  static constexpr std::size_t kSmallInput = 512;
  static constexpr std::size_t kLargeInput = 4096;

  /// Opened with the connection, closed with it.
  class Count {
   public:
    Count(metrics::Shard& metrics, OpenCount* open) : metrics_(&metrics), open_(open) {
      metrics.add(metrics::Counter::connections_opened);
    }
    Count(Count&& other) noexcept : metrics_(std::exchange(other.metrics_, nullptr)), open_(other.open_) {}
    Count& operator=(Count&&) = delete;
    Count(const Count&) = delete;
    Count& operator=(const Count&) = delete;
    ~Count() {
      if (metrics_ == nullptr) return;
      metrics_->add(metrics::Counter::connections_closed);
      if (open_ != nullptr) open_->fetch_sub(1, std::memory_order_relaxed);
    }

   private:
    metrics::Shard* metrics_;
    OpenCount* open_;
  };

  [[nodiscard]] static Socket::wait_type wait_for(tls::Step step) {
    return step == tls::Step::wants_writable ? Socket::wait_write : Socket::wait_read;
  }

  void make_input() {
    const std::size_t wanted = last_read_ < kSmallInput ? kSmallInput : kLargeInput;
    if (wanted == input_size_) return;
    input_ = std::make_unique_for_overwrite<char[]>(wanted);
    input_size_ = wanted;
  }

  /// What was read, and what lies behind it if that has filled the input.
  [[nodiscard]] std::string_view with_more(std::span<char> room, std::size_t size) {
    last_read_ = size;
    if (size < input_size_ || room.size() <= size) return {input_.get(), size};
    std::memcpy(room.data(), input_.get(), size);
    ErrorCode ignored;
    size += socket_.read_some(boost::asio::buffer(room.data() + size, room.size() - size), ignored);
    return {room.data(), size};
  }

  template <typename Done>
  void read_tls(std::span<char> room, Done done) {
    async_wait_readable([this, room, done = std::move(done)](const ErrorCode& error) mutable {
      if (error) {
        done(error, std::string_view());
      } else {
        readable_tls(room, std::move(done));
      }
    });
  }

  template <typename Done>
  void readable_tls(std::span<char> room, Done done) {
    std::size_t size = 0;
    switch (const tls::Step step = tls_->read(room, size)) {
      case tls::Step::done:
        done(ErrorCode(), std::string_view(room.data(), size));
        break;
      case tls::Step::wants_readable:
      case tls::Step::wants_writable:
        socket_.async_wait(wait_for(step), [this, room, done = std::move(done)](const ErrorCode& error) mutable {
          if (error) {
            done(error, std::string_view());
          } else {
            readable_tls(room, std::move(done));
          }
        });
        break;
      case tls::Step::ended:
        done(boost::asio::error::eof, std::string_view());
        break;
      case tls::Step::failed:
        done(boost::asio::error::connection_reset, std::string_view());
        break;
    }
  }

  Count count_;
  Socket socket_;
  std::unique_ptr<tls::Channel> tls_;
  std::unique_ptr<char[]> input_;  ///< made at the first read, and for plain bytes alone
  std::size_t input_size_ = 0;
  std::size_t last_read_ = 0;
  Socket::wait_type wait_of_write_ = Socket::wait_write;  ///< with TLS, a write may have to read first
};

}  // namespace sluice::server
