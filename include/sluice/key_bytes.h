// What stands for a key where keys of any type are kept in one kind of table.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace sluice {

/// The bytes of a key. Keys are equal when their bytes are.
///
/// There are specialisations for what converts to std::string_view, and for integers and enumerations. For another
/// type, write one: `of` returns a view of bytes that lie in the key, or an array of them.
///
///     template <>
///     struct sluice::KeyBytes<Address> {
///       static std::string_view of(const Address& key) { return {key.octets.data(), key.octets.size()}; }
///     };
template <typename Key>
struct KeyBytes;

/// Any text or bytes, of any length.
template <typename Key>
  requires std::convertible_to<const Key&, std::string_view>
struct KeyBytes<Key> {
  /// What a call takes for such a key.
  using Argument = std::string_view;
  /// The key itself.
  static std::string_view of(std::string_view key) noexcept { return key; }
};

/// Their own bytes.
template <typename Key>
  requires std::integral<Key> || std::is_enum_v<Key>
struct KeyBytes<Key> {
  /// What a call takes for such a key.
  using Argument = Key;
  /// A copy of the key's bytes, in the machine's order.
  static std::array<char, sizeof(Key)> of(Key key) noexcept {
    std::array<char, sizeof(Key)> bytes;
    std::memcpy(bytes.data(), &key, sizeof key);
    return bytes;
  }
};

namespace internal {

// How a key is handed over: as KeyBytes says, or by reference.
template <typename Key>
struct KeyArgument {
  using Type = const Key&;
};
template <typename Key>
  requires requires { typename KeyBytes<Key>::Argument; }
struct KeyArgument<Key> {
  using Type = typename KeyBytes<Key>::Argument;
};

inline std::string_view view_of(std::string_view bytes) noexcept { return bytes; }
template <std::size_t kSize>
std::string_view view_of(const std::array<char, kSize>& bytes) noexcept {
  return {bytes.data(), kSize};
}

}  // namespace internal

}  // namespace sluice
