#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <ctime>

namespace sluice::log {
namespace {

std::atomic<Level> least_level{Level::info};
std::atomic<Format> line_format{Format::text};

std::string utc(std::int64_t unix_nanoseconds) {
  const std::time_t seconds = unix_nanoseconds / 1'000'000'000;
  const int milliseconds = static_cast<int>(unix_nanoseconds / 1'000'000 % 1'000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 8> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%03dZ", milliseconds);
  return std::string(text.data(), length) + fraction.data();
}

enum class Quotes : bool { none, around };

// Bytes that would break the line, or the quotes around it. Others stay, so that UTF-8 stays legible.
void append_escaped(std::string& out, std::string_view text, Quotes quotes) {
  for (const char c : text) {
    if (quotes == Quotes::around && (c == '"' || c == '\\')) {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      std::array<char, 8> code{};
      std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += code.data();
    } else {
      out += c;
    }
  }
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  append_escaped(out, text, Quotes::around);
  out += '"';
}

bool is_plain(std::string_view value) {
  return !value.empty() && std::ranges::all_of(value, [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && c != '"' && c != '\\' && c != '=' && c != 0x7f;
  });
}

}  // namespace

std::string_view to_text(Level level) {
  switch (level) {
    case Level::debug:
      return "debug";
    case Level::info:
      return "info";
    case Level::warn:
      return "warn";
    case Level::error:
      break;
  }
  return "error";
}

void configure(Level least, Format format) {
  least_level = least;
  line_format = format;
}

bool enabled(Level level) { return level >= least_level.load(std::memory_order_relaxed); }

std::string line(Format format, Level level, std::int64_t unix_nanoseconds, std::string_view message,
                 std::initializer_list<Field> fields) {
  std::string out;
  if (format == Format::json) {
    out += R"({"time":")" + utc(unix_nanoseconds) + R"(","level":")";
    out += to_text(level);
    out += R"(","message":)";
    append_quoted(out, message);
    for (const Field& field : fields) {
      out += ',';
      append_quoted(out, field.name);
      out += ':';
      append_quoted(out, field.value);
    }
    out += '}';
    return out;
  }
  out += utc(unix_nanoseconds);
  out += ' ';
  out += to_text(level);
  out += ' ';
  append_escaped(out, message, Quotes::none);
  for (const Field& field : fields) {
    out += ' ';
    out += field.name;
    out += '=';
    if (is_plain(field.value)) {
      out += field.value;
    } else {
      append_quoted(out, field.value);
    }
  }
  return out;
}

void write(Level level, std::string_view message, std::initializer_list<Field> fields) {
  if (!enabled(level)) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string text =
      line(line_format, level, std::chrono::duration_cast<std::chrono::nanoseconds>(now).count(), message, fields);
  text += '\n';
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nobody reads the log: the daemon goes on
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace sluice::log
