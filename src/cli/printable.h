// Text from outside – names of keys, of limits, of files, a server's words – that is safe to show.
#pragma once

#include <streambuf>
#include <string>
#include <string_view>

namespace sluice::cli {

/// For names in a text: control characters, others that change how text is shown, and bytes that are not UTF-8 as
/// "\x1b", a backslash as "\\". So two names never look the same.
[[nodiscard]] std::string printable(std::string_view text);

/// For whole lines, JSON too: the same characters as "\u001b", what is not UTF-8 as "\ufffd". Line feeds and tabs stay.
[[nodiscard]] std::string without_controls(std::string_view text);

/// A quoted JSON string, valid whatever the bytes are. What is not UTF-8 is lost.
[[nodiscard]] std::string json_text(std::string_view text);

/// Passes lines on to another buffer, without_controls(), so that nothing that is printed is obeyed by a terminal or
/// breaks JSON. What is not a whole line yet waits for its end, or for a flush.
class SafeOutput final : public std::streambuf {
 public:
  /// `to` must outlive it.
  explicit SafeOutput(std::streambuf& to) : to_(to) {}
  ~SafeOutput() override;
  SafeOutput(const SafeOutput&) = delete;
  SafeOutput& operator=(const SafeOutput&) = delete;

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  [[nodiscard]] bool pass(std::size_t size);

  std::streambuf& to_;
  std::string waiting_;
};

}  // namespace sluice::cli
