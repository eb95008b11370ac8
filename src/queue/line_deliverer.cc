#include "queue/line_deliverer.h"

#include <openssl/evp.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

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

/// Does no later write come through, either?
bool is_for_ever(int error) { return error == EPIPE || error == ECONNRESET || error == EBADF || error == EINVAL; }

}  // namespace

void LineDeliverer::start(const Attempt& attempt, Done done) {
  if (lines_.empty() && is_cut_) lines_ += '\n';
  const Message& message = *attempt.message;
  lines_ += "{\"ticket\":";
  append_text(lines_, message.ticket);
  const auto member = [this](std::string_view name, std::string_view value) {
    lines_ += ",\"";
    lines_ += name;
    lines_ += "\":";
    append_text(lines_, value);
  };
  if (!message.key.empty()) member("key", message.key);
  member("method", message.method);
  member("path", message.path);
  lines_ += ",\"headers\":[";
  for (const auto& [name, value] : message.headers) {
    lines_ += lines_.back() == '[' ? "[" : ",[";
    append_text(lines_, name);
    lines_ += ',';
    append_text(lines_, value);
    lines_ += ']';
  }
  lines_ += ']';
  if (!message.body_reference.empty()) {
    member("body_reference", message.body_reference);
  } else if (is_utf8(message.body)) {
    member("body", message.body);
  } else {
    member("body_base64", base64(message.body));
  }
  lines_ += ",\"attempt\":" + std::to_string(attempt.number);
  lines_ += ",\"may_be_duplicate\":";
  lines_ += attempt.may_be_duplicate ? "true}\n" : "false}\n";
  waiting_.push_back({lines_.size(), std::move(done)});
}

void LineDeliverer::flush() {
  std::size_t written = 0;
  int error = 0;
  while (written < lines_.size() && error == 0) {
    const ssize_t size = ::write(descriptor_, lines_.data() + written, lines_.size() - written);
    if (size >= 0) {
      written += static_cast<std::size_t>(size);
    } else if (errno == EAGAIN) {
      // Somebody else has made it so: a slow reader is waited for, as by a descriptor that blocks.
      pollfd writable{.fd = descriptor_, .events = POLLOUT, .revents = 0};
      (void)::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (written > 0) is_cut_ = lines_[written - 1] != '\n';
  lines_.clear();
  const std::string failure = error == 0 ? "" : std::string("write: ") + std::strerror(error);
  const Outcome::Kind kind = is_for_ever(error) ? Outcome::Kind::broken : Outcome::Kind::hindered;
  for (const Waiting& waiting : std::exchange(waiting_, {})) {
    if (waiting.end <= written) {
      waiting.done({.kind = Outcome::Kind::delivered, .status = 0, .reason = {}});
    } else {
      waiting.done({.kind = kind, .status = 0, .reason = failure});
    }
  }
}

}  // namespace sluice::queue
