#include "queue/line_deliverer.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/utf8.h"

namespace sluice::queue {
namespace {

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
