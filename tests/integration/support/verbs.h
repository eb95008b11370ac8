// Asking a daemon for verbs by HTTP.
#pragma once

#include <string>
#include <string_view>

#include "tests/integration/support/http_client.h"

namespace sluice::test {

/// The text of a member of a JSON object, without quotes; empty: it has none. For flat answers of the daemon's own.
inline std::string member(std::string_view json, std::string_view name) {
  const std::string mark = "\"" + std::string(name) + "\":";
  const std::size_t at = json.find(mark);
  if (at == std::string_view::npos) return {};
  std::string_view rest = json.substr(at + mark.size());
  if (rest.starts_with('"')) return std::string(rest.substr(1, rest.find('"', 1) - 1));
  return std::string(rest.substr(0, rest.find_first_of(",}")));
}

/// What a daemon says to `"domain":…,"descriptors":[{key: value}]` and more members.
inline HttpAnswer ask(HttpClient& client, const std::string& verb, const std::string& key, const std::string& value,
                      const std::string& more = {}) {
  return client.post("/v1/" + verb,
                     R"({"domain":"shop","descriptors":[{")" + key + R"(":")" + value + R"("}])" + more + "}");
}

}  // namespace sluice::test
