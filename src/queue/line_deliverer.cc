#include "queue/line_deliverer.h"

#include <unistd.h>

#include <openssl/evp.h>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace sluice::queue {
namespace {

/// Length of the valid UTF-8 sequence that `text` begins with; 0: there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : (first >= 0xe0 ? 3 : 2);
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool bad = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                   (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return bad ? 0 : length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void append_text(std::string& out, std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t length = utf8_length(text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += digits[static_cast<unsigned char>(c) >> 4U];
      out += digits[static_cast<unsigned char>(c) & 15U];
    } else if (length == 0) {
      out += "\xef\xbf\xbd";  // of a header or path: shown, not kept
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

std::string base64(const std::string& bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

}  // namespace

void LineDeliverer::start(const Attempt& attempt, Done done) {
  const Message& message = *attempt.message;
  line_ = "{\"ticket\":";
  append_text(line_, message.ticket);
  const auto member = [this](std::string_view name, std::string_view value) {
    line_ += ",\"";
    line_ += name;
    line_ += "\":";
    append_text(line_, value);
  };
  if (!message.key.empty()) member("key", message.key);
  member("method", message.method);
  member("path", message.path);
  line_ += ",\"headers\":[";
  for (const auto& [name, value] : message.headers) {
    line_ += line_.back() == '[' ? "[" : ",[";
    append_text(line_, name);
    line_ += ',';
    append_text(line_, value);
    line_ += ']';
  }
  line_ += ']';
  if (!message.body_reference.empty()) {
    member("body_reference", message.body_reference);
  } else if (is_utf8(message.body)) {
    member("body", message.body);
  } else {
    member("body_base64", base64(message.body));
  }
  line_ += ",\"attempt\":" + std::to_string(attempt.number);
  line_ += ",\"may_be_duplicate\":";
  line_ += attempt.may_be_duplicate ? "true}\n" : "false}\n";
  for (std::size_t written = 0; written < line_.size();) {
    const ssize_t size = ::write(descriptor_, line_.data() + written, line_.size() - written);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      done({.kind = Outcome::Kind::retry, .status = 0, .reason = std::string("write: ") + std::strerror(errno)});
      return;
    }
    written += static_cast<std::size_t>(size);
  }
  done({.kind = Outcome::Kind::delivered, .status = 0, .reason = {}});
}

}  // namespace sluice::queue
