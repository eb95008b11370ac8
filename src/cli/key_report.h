// What a key in Redis holds, in words.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/key_name.h"
#include "cli/redis_servers.h"
#include "policy/policy.h"
#include "sluice/decision.h"
#include "sluice/limit.h"
#include "store/redis/key.h"

namespace sluice::cli {

/// A key as it is now. What is not known is not there.
struct KeyReport {
  std::string key;
  bool found = false;
  std::string type;     ///< Redis' own word
  std::string problem;  ///< why it is no state that can be read; empty: it is one, or there is none
  std::string limit_name;
  std::string identity;
  std::optional<Limit> numbers;  ///< the policy's, or those that the value was made with
  bool knows_rate = false;       ///< are all numbers known? Else only what is used is
  bool has_figures = false;
  Decision figures;        ///< as a check of cost 0 answers; without the rate: of the greatest there is
  std::uint64_t used = 0;  ///< tokens taken that still count; leases held
  std::optional<std::chrono::milliseconds> ttl;
  std::optional<std::chrono::microseconds> age;  ///< since the last change, by the server's clock
};

/// Reads keys. What it does writes nothing.
class KeyReader {
 public:
  /// `policy` may be null: then only what the values themselves tell is known. All must outlive this.
  KeyReader(RedisServers& servers, std::string prefix, const policy::Policy* policy);

  /// An error is one of the server or of the connection; a key that cannot be understood is told in its report.
  [[nodiscard]] Result<KeyReport> read(const std::string& key);
  /// Is it the name of a counter, with the prefix and groups of the settings?
  [[nodiscard]] bool is_counter(std::string_view key) const { return KeyName::parse(key, naming_).has_value(); }
  /// What names of counters look like, for messages.
  [[nodiscard]] std::string shape() const;
  /// The key of a limit: of the rule that it is made for.
  [[nodiscard]] std::string key_of(const store::CountedLimit& limit, std::string_view key) const;

 private:
  [[nodiscard]] std::optional<Error> read_value(KeyReport& report);
  [[nodiscard]] std::optional<Error> ask_script(KeyReport& report);

  RedisServers& servers_;
  const std::string prefix_;
  const store::redis::KeyNaming naming_;
  std::map<std::string, const policy::Rule*, std::less<>> rules_;  ///< by identity
};

/// Several lines, with the line break of the last.
[[nodiscard]] std::string to_words(const KeyReport& report);
/// One JSON object.
[[nodiscard]] std::string to_json(const KeyReport& report);

}  // namespace sluice::cli
