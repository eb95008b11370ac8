// Replies in RESP2 and RESP3.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::resp {

/// Appends replies to a string it does not own. The two protocols differ in maps alone, as far as they are used here.
class ReplyWriter {
 public:
  ReplyWriter(std::string& out, int protocol) : out_(out), protocol_(protocol) {}

  void integer(std::int64_t value) { number(':', value); }
  /// An array of them, at most nine.
  template <std::size_t kCount>
  void integers(const std::array<std::int64_t, kCount>& values) {
    static_assert(kCount <= 9);
    std::array<char, 4 + kCount * kMostNumber> text;  // NOLINT(cppcoreguidelines-pro-type-member-init): written at once
    char* end = text.data();
    *end++ = '*';
    *end++ = static_cast<char>('0' + kCount);
    end = put_line_end(end);
    for (const std::int64_t value : values) end = put_number(end, ':', value);
    out_.append(text.data(), static_cast<std::size_t>(end - text.data()));
  }
  /// `text` has no line end.
  void simple(std::string_view text) { line('+', text); }
  /// An error; `text` begins with its code. Control characters in it, which could end the line, become spaces.
  void error(std::string_view text) {
    out_.push_back('-');
    for (const char c : text) out_.push_back(static_cast<unsigned char>(c) < ' ' ? ' ' : c);
    out_.append("\r\n");
  }
  void bulk(std::string_view bytes) {
    number('$', static_cast<std::int64_t>(bytes.size()));
    out_.append(bytes).append("\r\n");
  }
  /// Whole replies, written before.
  void verbatim(std::string_view replies) { out_.append(replies); }
  void null() { out_.append(protocol_ == 3 ? "_\r\n" : "$-1\r\n"); }
  /// That many replies follow.
  void array(std::size_t size) { number('*', static_cast<std::int64_t>(size)); }
  /// That many pairs of replies follow.
  void map(std::size_t size) {
    if (protocol_ == 3) {
      number('%', static_cast<std::int64_t>(size));
    } else {
      array(2 * size);
    }
  }

 private:
  static constexpr std::size_t kMostNumber = 24;  ///< bytes of one, with its type and line end

  void number(char type, std::int64_t value) {
    char text[kMostNumber];
    out_.append(text, static_cast<std::size_t>(put_number(text, type, value) - text));
  }
  static char* put_number(char* at, char type, std::int64_t value) {
    *at++ = type;
    if (value >= 0 && value < 10) {
      *at++ = static_cast<char>('0' + value);
    } else {
      at = std::to_chars(at, at + kMostNumber - 3, value).ptr;
    }
    return put_line_end(at);
  }
  static char* put_line_end(char* at) {
    *at++ = '\r';
    *at++ = '\n';
    return at;
  }
  void line(char type, std::string_view text) {
    out_.push_back(type);
    out_.append(text).append("\r\n");
  }

  std::string& out_;
  int protocol_;
};

}  // namespace sluice::resp
