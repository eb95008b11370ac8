#include "store/redis/script.h"

#include <openssl/evp.h>

#include <array>
#include <cassert>
#include <utility>

#include "lua_files.h"
#include "store/redis/literal_text.h"

namespace sluice::store::redis {

namespace {

constexpr std::string_view kMark = "--@ ";

constexpr std::array<std::pair<std::string_view, const std::string_view*>, 7> kFiles{{
    {"one_bucket", &lua::kOneBucket},
    {"token_bucket", &lua::kTokenBucket},
    {"fixed_window", &lua::kFixedWindow},
    {"sliding_window", &lua::kSlidingWindow},
    {"sliding_log", &lua::kSlidingLog},
    {"concurrency", &lua::kConcurrency},
    {"verb", &lua::kVerb},
}};

std::string sha1_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    constexpr std::string_view digits = "0123456789abcdef";
    hex += digits[digest[i] >> 4U];
    hex += digits[digest[i] & 15U];
  }
  return hex;
}

// Takes the first line off `text`, without blanks around it and without a comment that follows code.
std::string_view next_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  if (const std::size_t begin = line.find_first_not_of(' '); begin != std::string_view::npos) line.remove_prefix(begin);
  if (line.starts_with(kMark)) return line;
  line = line.substr(0, line.find("--"));
  const std::size_t end = line.find_last_not_of(' ');
  return end == std::string_view::npos ? std::string_view() : line.substr(0, end + 1);
}

// The lines of a file from "--@ name" to the next such mark.
std::string_view section(std::string_view file, std::string_view name) {
  const std::size_t begin = file.find("\n--@ " + std::string(name) + "\n");
  assert(begin != std::string_view::npos);
  file.remove_prefix(file.find('\n', begin + 1) + 1);
  return file.substr(0, file.find("\n--@ "));
}

// Appends code without comments, with the sections that it names in their places: "--@ file section".
void append_code(std::string& out, std::string_view code) {
  while (!code.empty()) {
    const std::string_view line = next_line(code);
    if (line.starts_with(kMark)) {
      const std::string_view named = line.substr(kMark.size());
      const std::size_t blank = named.find(' ');
      for (const auto& [name, file] : kFiles) {
        if (name == named.substr(0, blank)) append_code(out, section(*file, named.substr(blank + 1)));
      }
    } else if (!line.empty()) {
      out.append(line).append("\n");
    }
  }
}

}  // namespace

Script script_of(std::string text) {
  std::string name = sha1_hex(text);
  return {.text = std::move(text), .sha1 = std::move(name)};
}

Script make_check_script(std::string_view clock, ScriptStyle style) {
  std::string text;
  append_code(text, clock);
  std::string code;
  append_code(code, lua::kMain);
  text += style == ScriptStyle::literal ? literal_text(code, kMostLiteralKeys) : code;
  return script_of(std::move(text));
}

const Script& check_script(ScriptStyle style) {
  static const Script kFast = make_check_script(lua::kClockServer);
  static const Script kLiteral = make_check_script(lua::kClockServer, ScriptStyle::literal);
  return style == ScriptStyle::literal ? kLiteral : kFast;
}

}  // namespace sluice::store::redis
