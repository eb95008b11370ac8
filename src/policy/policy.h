// A policy: what is limited, as an immutable snapshot that answers look-ups without allocation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/envoy_rules.h"
#include "policy/request.h"
#include "policy/rule.h"
#include "request/rules.h"

namespace sluice::policy {

/// One finding in a policy file. `line` and `column` count from 1; 0: the file as a whole.
struct Finding {
  enum class Severity : std::uint8_t { error, warning };
  Severity severity = Severity::error;
  std::string file;
  int line = 0;
  int column = 0;
  std::string message;  ///< what is wrong, what is expected, what was found

  [[nodiscard]] bool is_error() const { return severity == Severity::error; }
  /// "file:line:column: error: message"
  [[nodiscard]] std::string to_string() const;
};

class Policy;

struct Loaded {
  std::shared_ptr<const Policy> policy;  ///< null when any finding is an error
  std::vector<Finding> findings;         ///< all of all files, in order of file and line
  std::size_t files = 0;                 ///< how many were read
};

/// A file's text with the name to show in findings.
struct SourceText {
  std::string name;
  std::string text;
};

/// What files and directories held when they were read.
struct SourceFiles {
  std::vector<SourceText> texts;
  std::vector<Finding> findings;  ///< what could not be read

  /// A number that stands for all of it: equal ones have, but for a chance of 2^-64, the same content.
  [[nodiscard]] std::uint64_t fingerprint() const;
};

struct LoadOptions {
  /// Says why a store cannot keep a limit exactly, or nothing. Called for each limit; what it says becomes an error at
  /// the limit's place.
  std::function<std::optional<std::string>(const Limit&)> refuse_limit;
  /// The names that `overflow` may give as its queue; nothing: they are not known here, and any will do.
  std::optional<std::vector<std::string>> queues;
  /// Set: judge as envoyproxy/ratelimit does.
  std::optional<EnvoyRules> envoy{};  // NOLINT(readability-redundant-member-init): for designated initializers
};

/// Reads files and directories (every regular file directly in them that does not start with a dot). Never throws.
[[nodiscard]] SourceFiles read_files(std::span<const std::filesystem::path> paths);
/// A policy of what was read.
[[nodiscard]] Loaded load(const SourceFiles& files, const LoadOptions& options = {});
/// Reads and loads.
[[nodiscard]] Loaded load(std::span<const std::filesystem::path> paths, const LoadOptions& options = {});
/// The same from texts already read (tests, fuzzers, reload by content).
[[nodiscard]] Loaded load_texts(std::span<const SourceText> texts, const LoadOptions& options = {});

class Domain;

/// Thread-safe for reading. A look-up allocates nothing and costs one hash a level.
class Policy {
 public:
  ~Policy();
  [[nodiscard]] const Domain* find_domain(std::string_view name) const;
  /// The names of all domains, in the order of their files.
  [[nodiscard]] std::vector<std::string_view> domain_names() const;
  /// The rule that limits a descriptor, or null: no limit. Appends the key (see store::Charge::key) to `key`.
  /// Exact key and value first, then this level's wildcards in file order, then the bare key; no backtracking; a rule
  /// counts only at the last entry.
  [[nodiscard]] const Rule* match(const Domain& domain, std::span<const Entry> entries, std::string& key) const;
  /// Can descriptors of these keys meet a limit? An entry without a value may have any. For linting: looks at all of
  /// the policy.
  [[nodiscard]] bool can_match(const Domain& domain, std::span<const Entry> entries) const;
  /// How HTTP requests become descriptors: every `requests:`, in the order of the files.
  [[nodiscard]] std::span<const std::shared_ptr<const request::Rules>> requests() const;
  /// Null unless it was loaded to judge as envoyproxy/ratelimit does.
  [[nodiscard]] const EnvoyRules* envoy() const;
  /// All rules, by slot.
  [[nodiscard]] std::span<const Rule* const> rules() const;

 private:
  friend class PolicyBuilder;
  Policy();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The rule for a limit that a request brings itself: a fixed window, as in envoyproxy/ratelimit; a unit that is
/// unknown is a second. Its identity holds the domain and unit, its key all of the entries, its label the unit alone.
/// `envoy`: as in Policy.
[[nodiscard]] Rule make_override_rule(std::string_view domain, std::span<const Entry> entries,
                                      const LimitOverride& limit, std::string& key, const EnvoyRules* envoy = nullptr);

}  // namespace sluice::policy
