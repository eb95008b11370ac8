#include "queue/stored_headers.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/ascii.h"

namespace sluice::queue {
namespace {

constexpr std::array<std::string_view, 13> kNever{"connection",
                                                  "keep-alive",
                                                  "proxy-connection",
                                                  "te",
                                                  "trailer",
                                                  "transfer-encoding",
                                                  "upgrade",
                                                  "host",
                                                  "expect",
                                                  "content-length",
                                                  "idempotency-key",
                                                  "http2-settings",
                                                  "proxy-authenticate"};
constexpr std::array<std::string_view, 5> kSecrets{"authorization", "cookie", "proxy-authorization", "set-cookie",
                                                   "x-api-key"};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

/// The names in a list such as "close, X-Token".
void add_names(std::string_view list, std::vector<std::string>& names) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view name = list.substr(0, comma);
    while (!name.empty() && (name.front() == ' ' || name.front() == '\t')) name.remove_prefix(1);
    while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.remove_suffix(1);
    if (!name.empty()) names.push_back(lower(name));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

}  // namespace

bool tells_of_delivery(std::string_view name) {
  constexpr std::string_view own = "sluice";
  return name.size() > own.size() && equal_ignoring_case(name.substr(0, own.size()), own) &&
         (name[own.size()] == '-' || name[own.size()] == '_');
}

void drop_unstored(Pairs& headers, std::span<const std::string> kept) {
  std::vector<std::string> of_connection;
  for (const auto& [name, value] : headers) {
    if (lower(name) == "connection") add_names(value, of_connection);
  }
  std::erase_if(headers, [&](const auto& header) {
    const std::string name = lower(header.first);
    if (std::ranges::find(kNever, name) != kNever.end() || tells_of_delivery(name)) return true;
    if (std::ranges::find(of_connection, name) != of_connection.end()) return true;
    const bool is_secret = std::ranges::find(kSecrets, name) != kSecrets.end();
    return is_secret && std::ranges::find(kept, name) == kept.end();
  });
}

}  // namespace sluice::queue
