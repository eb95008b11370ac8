// gRPC's framing of messages, and header fields for nghttp2.
#pragma once

#include <nghttp2/nghttp2.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::front::grpc {

inline constexpr std::size_t kFrameHead = 5;  // of a gRPC message: compressed flag and length

inline std::uint8_t* bytes_of(std::string_view text) {
  // nghttp2's structure is not const-correct; it only reads.
  return reinterpret_cast<std::uint8_t*>(
      const_cast<char*>(text.data()));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

/// A field whose name and value live in static storage.
inline nghttp2_nv fixed_field(std::string_view name, std::string_view value) {
  constexpr std::uint8_t no_copy = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
  return {bytes_of(name), bytes_of(value), name.size(), value.size(), no_copy};
}

inline nghttp2_nv copied_field(std::string_view name, std::string_view value) {
  return {bytes_of(name), bytes_of(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NO_COPY_NAME};
}

inline const nghttp2_nv kStatus200 = fixed_field(":status", "200");
inline const nghttp2_nv kGrpcType = fixed_field("content-type", "application/grpc");
inline const nghttp2_nv kGrpcOk = fixed_field("grpc-status", "0");

/// Begins the one message of an answer, whose head end_message() fills in.
inline void begin_message(std::string& out) { out.assign(kFrameHead, '\0'); }

inline void end_message(std::string& out) {
  const std::size_t length = out.size() - kFrameHead;
  for (std::size_t i = 1; i < kFrameHead; ++i) out[i] = static_cast<char>(length >> (8 * (kFrameHead - 1 - i)));
}

/// Of a message that begins with its whole head.
inline std::size_t message_length(std::string_view frame) {
  std::size_t length = 0;
  for (std::size_t i = 1; i < kFrameHead; ++i) length = length << 8U | static_cast<unsigned char>(frame[i]);
  return length;
}

/// A time, and never one before it.
inline std::int64_t later(std::int64_t time, std::chrono::nanoseconds by) {
  return by.count() > INT64_MAX - time ? INT64_MAX : time + by.count();
}

}  // namespace sluice::front::grpc
