// Counts the HTTP/2 frames that a client sends, of whatever kind: nghttp2 does not tell of those that it ignores.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::front::grpc {

/// Follows the frames in a client's bytes, however they are cut. A frame counts once all of it has come. What it says
/// means nothing once the framing is broken, which nghttp2 finds. Not thread-safe.
class FrameTally {
 public:
  /// Takes the next bytes, from the client's connection preface on.
  void add(std::span<const std::uint8_t> bytes) {
    while (!bytes.empty()) {
      if (payload_ != 0) {
        const std::size_t size = std::min(bytes.size(), payload_);
        bytes = bytes.subspan(size);
        payload_ -= size;
        if (payload_ == 0) count();
        continue;
      }
      if (head_bytes_ < 3) length_ = length_ << 8U | bytes.front();
      if (head_bytes_ == 3) type_ = bytes.front();
      bytes = bytes.subspan(1);
      if (++head_bytes_ < kHead) continue;
      head_bytes_ = 0;
      payload_ = length_;
      length_ = 0;
      if (payload_ == 0) count();
    }
  }

  /// DATA frames since the last reset().
  [[nodiscard]] std::int64_t data() const { return data_; }
  /// Other frames that neither begin, continue nor end a call: not HEADERS, CONTINUATION, RST_STREAM.
  [[nodiscard]] std::int64_t others() const { return others_; }
  void reset() { data_ = others_ = 0; }

 private:
  static constexpr std::size_t kHead = 9;

  void count() {
    switch (type_) {
      case NGHTTP2_DATA:
        ++data_;
        break;
      case NGHTTP2_HEADERS:
      case NGHTTP2_CONTINUATION:
      case NGHTTP2_RST_STREAM:
        break;
      default:
        ++others_;
    }
  }

  std::size_t payload_ = NGHTTP2_CLIENT_MAGIC_LEN;  ///< bytes of the present frame still to come
  std::size_t length_ = 0;
  std::size_t head_bytes_ = 0;
  std::uint8_t type_ = NGHTTP2_CONTINUATION;  ///< the preface comes first, and does not count
  std::int64_t data_ = 0;
  std::int64_t others_ = 0;
};

}  // namespace sluice::front::grpc
