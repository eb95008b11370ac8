#include "store/redis/reply_reader.h"

namespace sluice::store::redis {

ReplyReader::ReplyReader() : reader_(redisReaderCreate()), failed_(reader_ == nullptr) {}

void ReplyReader::feed(std::string_view bytes) {
  if (failed_ || bytes.empty()) return;
  failed_ = redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK;
}

Reply ReplyReader::next() {
  if (failed_) return nullptr;
  void* reply = nullptr;
  failed_ = redisReaderGetReply(reader_.get(), &reply) != REDIS_OK;
  return Reply(static_cast<redisReply*>(reply));
}

}  // namespace sluice::store::redis
