// Whole numbers in the strings that scripts read and write: little-endian, of 1 to 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::store::redis {

template <std::size_t bytes>
void append_packed(std::string& out, std::uint64_t number) {
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(number >> 8U * i & 0xffU);
}

/// Takes numbers off the front of a string. Reading past the end gives 0 and is remembered.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

  template <std::size_t bytes>
  std::uint64_t take() {
    if (bytes_.size() < bytes) {
      bytes_ = {};
      short_ = true;
      return 0;
    }
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      number |= std::uint64_t{static_cast<unsigned char>(bytes_[i])} << 8U * i;
    }
    bytes_.remove_prefix(bytes);
    return number;
  }
  /// A number of 7 bytes or less fits an int64.
  template <std::size_t bytes>
  std::int64_t take_signed() {
    return static_cast<std::int64_t>(take<bytes>());
  }
  [[nodiscard]] std::string_view rest() const { return bytes_; }
  [[nodiscard]] bool was_short() const { return short_; }

 private:
  std::string_view bytes_;
  bool short_ = false;
};

}  // namespace sluice::store::redis
