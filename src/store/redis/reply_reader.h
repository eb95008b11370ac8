// Replies out of the bytes of a connection.
#pragma once

#include <hiredis/hiredis.h>

#include <memory>
#include <string_view>

namespace sluice::store::redis {

struct ReplyDeleter {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, ReplyDeleter>;

/// The bytes of a bulk string, status or error.
[[nodiscard]] inline std::string_view text_of(const redisReply& reply) { return {reply.str, reply.len}; }

/// Incremental: bytes may come in any pieces. Not thread-safe.
class ReplyReader {
 public:
  ReplyReader();
  void feed(std::string_view bytes);
  /// The next whole reply, or null: more bytes are needed, or failed().
  [[nodiscard]] Reply next();
  /// The bytes were not of the protocol; nothing more can be read.
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  struct ReaderDeleter {
    void operator()(redisReader* reader) const { redisReaderFree(reader); }
  };
  std::unique_ptr<redisReader, ReaderDeleter> reader_;
  bool failed_ = false;
};

}  // namespace sluice::store::redis
