// A connection to Redis that its only thread waits for.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "store/redis/reply_reader.h"
#include "store/redis/tls.h"
#include "store/redis/url.h"
#include "store/redis/wire.h"

namespace sluice::queue {

/// Every function takes at most the time-out, and tells in problem() why it failed; then the link is to be dropped.
class TicketLink final : private store::redis::Wire::Owner {
 public:
  explicit TicketLink(std::chrono::milliseconds timeout) : timeout_(timeout) {}
  ~TicketLink();
  TicketLink(const TicketLink&) = delete;
  TicketLink& operator=(const TicketLink&) = delete;

  /// `tls`: null: in the clear.
  [[nodiscard]] bool open(const store::redis::Address& address, store::redis::Tls* tls);
  /// Leaves with the next receive().
  void append(std::span<const std::string> words);
  /// The same in pieces: a command of so many words, which follow.
  void begin(std::size_t words);
  void append_word(std::string_view word);
  /// The reply to the oldest command without one. Null: none came.
  [[nodiscard]] store::redis::Reply receive();
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  void wire_opened() override { is_open_ = true; }
  void wire_read(std::string_view bytes) override { reader_.feed(bytes); }
  void wire_written() override { is_writing_ = false; }
  void wire_failed(std::string_view why) override;

  /// Until `is_done()`. False: it was not in time, or the connection has failed.
  template <typename Done>
  bool run_until(Done is_done);

  const std::chrono::milliseconds timeout_;
  boost::asio::io_context io_{1};
  std::shared_ptr<store::redis::Wire> wire_;
  store::redis::ReplyReader reader_;
  std::string output_;
  std::string problem_;
  bool is_open_ = false;
  bool is_writing_ = false;
  bool has_failed_ = false;
};

}  // namespace sluice::queue
