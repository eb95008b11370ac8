#include "store/redis/reply_reader.h"

namespace sluice::store::redis {

namespace {

// No command of ours has a longer answer; hiredis would reserve memory for whatever length the server announces.
constexpr int kMostElements = 4'096;

const redisReplyObjectFunctions& usual_functions() {
  static const redisReplyObjectFunctions kFunctions = [] {
    const std::unique_ptr<redisReader, decltype(&redisReaderFree)> reader(redisReaderCreate(), redisReaderFree);
    return *reader->fn;
  }();
  return kFunctions;
}

// `Size` is int or size_t, by hiredis' version.
template <typename Size>
void* create_bounded_array(const redisReadTask* task, Size elements) {
  return elements > static_cast<Size>(kMostElements) ? nullptr : usual_functions().createArray(task, elements);
}

redisReader* make_reader() {
  static redisReplyObjectFunctions functions = [] {
    redisReplyObjectFunctions bounded = usual_functions();
    bounded.createArray = create_bounded_array;
    return bounded;
  }();
  return redisReaderCreateWithFunctions(&functions);
}

}  // namespace

ReplyReader::ReplyReader() : reader_(make_reader()), failed_(reader_ == nullptr) {}

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
