// The daemon's log: one line a message on standard error, as text or JSON.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::log {

enum class Level : std::uint8_t { debug, info, warn, error };
enum class Format : std::uint8_t { text, json };

[[nodiscard]] std::string_view to_text(Level level);

/// A figure or name that belongs to a message; values are shown as they are, odd bytes escaped.
struct Field {
  std::string_view name;
  std::string_view value;
};

/// Thread-safe, but meant to be called once, at start. Default: info, text.
void configure(Level least, Format format);
[[nodiscard]] bool enabled(Level level);

/// One line for a message: what write() prints, without the line's end. Pure. `unix_nanoseconds` is shown as UTC to the
/// millisecond.
[[nodiscard]] std::string line(Format format, Level level, std::int64_t unix_nanoseconds, std::string_view message,
                               std::initializer_list<Field> fields);

/// Thread-safe: a line is written in one piece. Meant for starts, ends and changes of state, never for each request: it
/// writes synchronously.
void write(Level level, std::string_view message, std::initializer_list<Field> fields = {});

inline void debug(std::string_view message, std::initializer_list<Field> fields = {}) {
  write(Level::debug, message, fields);
}
inline void info(std::string_view message, std::initializer_list<Field> fields = {}) {
  write(Level::info, message, fields);
}
inline void warn(std::string_view message, std::initializer_list<Field> fields = {}) {
  write(Level::warn, message, fields);
}
inline void error(std::string_view message, std::initializer_list<Field> fields = {}) {
  write(Level::error, message, fields);
}

}  // namespace sluice::log
