// The memory of nghttp2's sessions: the heap, but for the room in which they make frames.
#pragma once

#include <nghttp2/nghttp2.h>

#include <array>
#include <cstddef>

namespace sluice::front::grpc {

/// Where the sessions of a thread make their frames, one at a time. A session of nghttp2 has 16 KiB of its own for
/// that, of which an idle connection keeps what it has touched. But a frame is copied out as soon as it is made, before
/// any other session makes one, and nghttp2 looks at what it has handed out no more. Not thread-safe.
class FrameRoom {
 public:
  /// What a session asks for: a frame's head, a byte that tells of padding, and the most that a frame carries.
  static constexpr std::size_t kSize = 9 + 1 + 16'384;

  [[nodiscard]] void* bytes() { return bytes_.data(); }

 private:
  alignas(std::max_align_t) std::array<unsigned char, kSize> bytes_{};
};

/// What one session allocates by. Gives it the room for the first block of that size, and the heap for all others, also
/// if it wants another one of that size meanwhile, as for a header block of several frames. Neither copied nor moved;
/// it and the room must outlive the session.
class SessionMemory {
 public:
  explicit SessionMemory(FrameRoom& room) : room_(room) {}
  SessionMemory(const SessionMemory&) = delete;
  SessionMemory& operator=(const SessionMemory&) = delete;

  [[nodiscard]] nghttp2_mem functions();

 private:
  void* allocate(std::size_t size);
  void* resize(void* block, std::size_t size);
  void release(void* block);

  FrameRoom& room_;
  bool has_room_ = false;
};

}  // namespace sluice::front::grpc
