// MULTI, EXEC and DISCARD of one connection.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice::resp {

/// Commands behind MULTI are kept as they came, and none of them is carried out before EXEC: then all of them, or none
/// when one of them was refused. Others' commands may come between them, as each is a decision of its own. Not
/// thread-safe.
class Transaction {
 public:
  static constexpr std::size_t kMostCommands = 1'024;
  static constexpr std::size_t kMostBytes = std::size_t{128} * 1024;  ///< of all commands, as they came

  /// Is this one of MULTI, EXEC, DISCARD, WATCH and UNWATCH?
  [[nodiscard]] static bool is_word(std::string_view name);
  /// Answers one of them: a whole reply, of EXEC that of the array, whose elements are the replies to rest().
  [[nodiscard]] std::string answer(std::span<const std::string_view> arguments);

  /// Between MULTI and EXEC or DISCARD.
  [[nodiscard]] bool is_open() const { return is_open_; }
  /// Is this to be kept for EXEC, while open? QUIT, RESET without a key and those of is_word() but UNWATCH are not.
  [[nodiscard]] static bool keeps(std::span<const std::string_view> arguments);
  /// Keeps a command, which is `text`. Why not, as an error reply, which spoils it; nothing: it is kept.
  [[nodiscard]] std::optional<std::string> add(std::span<const std::string_view> arguments, std::string_view text);
  /// A command was refused: EXEC carries out nothing.
  void spoil() { is_spoilt_ = true; }
  /// As at the beginning.
  void forget() { *this = Transaction(); }

  /// Has EXEC left something to be carried out?
  [[nodiscard]] bool is_running() const { return is_running_; }
  /// That, as it came.
  [[nodiscard]] std::string_view rest() const { return std::string_view(text_).substr(done_); }
  /// That many bytes of rest() have been carried out.
  void ran(std::size_t size);

 private:
  std::string execute();

  std::string text_;
  std::size_t commands_ = 0;
  std::size_t done_ = 0;  ///< bytes of the text
  bool is_open_ = false;
  bool is_spoilt_ = false;
  bool is_running_ = false;
};

}  // namespace sluice::resp
