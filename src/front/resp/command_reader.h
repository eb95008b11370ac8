// Commands as Redis clients send them: arrays of bulk strings, or words on a line.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::resp {

/// Reads one command after the other from the start of what has come. Holds no input: what it finds are views into it.
/// Not thread-safe. Cost: proportional to the command's arguments and line ends; the bytes of bulk strings are skipped.
class CommandReader {
 public:
  static constexpr std::size_t kMaxArguments = 1'024;
  static constexpr std::size_t kMaxBulk = std::size_t{64} * 1024;  ///< bytes of one argument
  static constexpr std::size_t kMaxLine = std::size_t{64} * 1024;  ///< bytes of an inline command
  static constexpr std::size_t kMaxCommand = std::size_t{128} * 1024;

  enum class Status : unsigned char {
    command,  ///< arguments() has it; none: an empty command, to be skipped
    more,     ///< it is not whole
    broken    ///< error() says why; nothing that follows can be understood
  };

  [[nodiscard]] Status read(std::string_view input);
  /// Of the command just read; valid until the next read, and as long as the input.
  [[nodiscard]] std::span<const std::string_view> arguments() const { return arguments_; }
  /// All its bytes; as long as the input.
  [[nodiscard]] std::string_view text() const { return text_; }
  /// How many bytes of the input the command took.
  [[nodiscard]] std::size_t used() const { return used_; }
  /// After `more`: reading again is of no use before the input has this many bytes.
  [[nodiscard]] std::size_t wanted() const { return wanted_; }
  /// Without "ERR".
  [[nodiscard]] std::string_view error() const { return error_; }

 private:
  /// The number on the line that begins behind the type byte at used_, which then goes behind the line.
  Status read_number(std::string_view input, std::string_view what, long long& number);
  Status read_array(std::string_view input);
  Status read_line(std::string_view input);
  /// Splits a line into words; false: its quotes are not closed.
  bool split(std::string_view line);
  bool read_quoted(std::string_view line, std::size_t& at);
  Status more(std::size_t wanted);
  Status broken(std::string error);

  std::vector<std::string_view> arguments_;
  std::string_view text_;
  std::string unquoted_;  ///< text of quoted words
  std::string error_;
  std::size_t used_ = 0;
  std::size_t wanted_ = 0;
};

}  // namespace sluice::resp
