#include "front/grpc/stream.h"

#include "front/grpc/connection.h"

namespace sluice::front::grpc {
namespace {

constexpr std::size_t kMostFree = 4096;
constexpr std::size_t kKeptCapacity = 1024;

void clear(std::string& buffer) {
  if (buffer.capacity() > kKeptCapacity) {
    buffer = std::string();
  } else {
    buffer.clear();
  }
}

}  // namespace

void Stream::answered(limiter::Call&) { connection->call_answered(*this); }

void Stream::answered(limiter::VerbCall&) { connection->call_answered(*this); }

void Stream::cancel() {
  call.cancel();
  if (verb_call != nullptr) verb_call->cancel();
}

void Stream::reset() {
  call.forget();
  verb_call.reset();
  span.reset();
  if (trace != nullptr) trace->clear();
  connection = nullptr;
  id = 0;
  state = State::receiving;
  method = Method::none;
  is_ending = told_serving = false;
  is_post = is_head = is_grpc = bad_timeout = has_authorization = is_ambiguous = false;
  has_token = is_admitted = has_trailers = remote_closed = false;
  begun = 0;
  timeout = -1;
  header_size = 0;
  clear(request);
  clear(response);
  sent = 0;
}

Stream& StreamPool::take() {
  if (free_.empty()) return *std::make_unique<Stream>(metrics_).release();
  Stream* stream = free_.back().release();
  free_.pop_back();
  return *stream;
}

void StreamPool::give_back(Stream& stream) {
  std::unique_ptr<Stream> owned(&stream);
  if (free_.size() == kMostFree) return;
  owned->reset();
  free_.push_back(std::move(owned));
}

}  // namespace sluice::front::grpc
