#include "front/grpc/frame_room.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace sluice::front::grpc {

// NOLINTBEGIN(cppcoreguidelines-no-malloc): nghttp2's words
nghttp2_mem SessionMemory::functions() {
  const auto self = [](void* user) -> SessionMemory& { return *static_cast<SessionMemory*>(user); };
  static constexpr auto kSelf = self;
  return {.mem_user_data = this,
          .malloc = [](std::size_t size, void* user) { return kSelf(user).allocate(size); },
          .free = [](void* block, void* user) { kSelf(user).release(block); },
          .calloc = [](std::size_t count, std::size_t size, void*) { return std::calloc(count, size); },
          .realloc = [](void* block, std::size_t size, void* user) { return kSelf(user).resize(block, size); }};
}

void* SessionMemory::allocate(std::size_t size) {
  if (size != FrameRoom::kSize || has_room_) return std::malloc(size);
  has_room_ = true;
  return room_.bytes();
}

void* SessionMemory::resize(void* block, std::size_t size) {
  if (block == nullptr) return allocate(size);
  if (block != room_.bytes()) return std::realloc(block, size);
  void* const moved = std::malloc(size);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, std::min(size, FrameRoom::kSize));
  has_room_ = false;
  return moved;
}

void SessionMemory::release(void* block) {
  if (block == room_.bytes()) {
    has_room_ = false;
  } else {
    std::free(block);
  }
}
// NOLINTEND(cppcoreguidelines-no-malloc)

}  // namespace sluice::front::grpc
