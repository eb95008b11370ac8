// Commands in the Redis protocol, appended to a buffer.
#pragma once

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::store::redis {

inline void append_number(std::string& out, std::size_t number) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
}

/// The start of a command of `arguments` words, its name included; as many append_bulk follow.
inline void append_command(std::string& out, std::size_t arguments) {
  out += '*';
  append_number(out, arguments);
  out += "\r\n";
}

/// Before a word of `size` bytes, after which "\r\n" is to follow.
inline void append_bulk_head(std::string& out, std::size_t size) {
  out += '$';
  append_number(out, size);
  out += "\r\n";
}

inline void append_bulk(std::string& out, std::string_view word) {
  append_bulk_head(out, word.size());
  out += word;
  out += "\r\n";
}

/// `user`: empty: the default one.
inline void append_auth(std::string& out, std::string_view user, std::string_view password) {
  append_command(out, user.empty() ? 2 : 3);
  append_bulk(out, "AUTH");
  if (!user.empty()) append_bulk(out, user);
  append_bulk(out, password);
}

}  // namespace sluice::store::redis
