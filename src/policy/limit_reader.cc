#include "policy/limit_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "algorithm/calendar.h"
#include "algorithm/compiled_limit.h"
#include "algorithm/limit_check.h"
#include "base/duration.h"
#include "base/suggest.h"
#include "policy/denial_reader.h"
#include "policy/overflow_reader.h"
#include "policy/place_names.h"

namespace sluice::policy {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

template <typename T>
struct Named {
  std::string_view name;
  T value;
};

constexpr std::array kUnits{
    Named<Unit>{"second", Unit::second}, Named<Unit>{"minute", Unit::minute}, Named<Unit>{"hour", Unit::hour},
    Named<Unit>{"day", Unit::day},       Named<Unit>{"week", Unit::week},     Named<Unit>{"month", Unit::month},
    Named<Unit>{"year", Unit::year},
};

/// GCRA is the token bucket's decision in another notation.
constexpr std::array kAlgorithms{
    Named<Algorithm>{"token_bucket", Algorithm::token_bucket},
    Named<Algorithm>{"gcra", Algorithm::token_bucket},
    Named<Algorithm>{"leaky_bucket", Algorithm::leaky_bucket},
    Named<Algorithm>{"fixed_window", Algorithm::fixed_window},
    Named<Algorithm>{"sliding_window", Algorithm::sliding_window},
    Named<Algorithm>{"sliding_log", Algorithm::sliding_log},
    Named<Algorithm>{"concurrency", Algorithm::concurrency},
};

constexpr std::array kAligns{
    Named<Align>{"epoch", Align::epoch},
    Named<Align>{"first_hit", Align::first_hit},
    Named<Align>{"calendar", Align::calendar},
};

/// Do fronts hold the answer back?
constexpr std::array kDelayUses{
    Named<bool>{"return", false},
    Named<bool>{"hold", true},
};

constexpr std::array kFailureAnswers{
    Named<OnStoreFailure>{"local", OnStoreFailure::local},
    Named<OnStoreFailure>{"allow", OnStoreFailure::allow},
    Named<OnStoreFailure>{"deny", OnStoreFailure::deny},
};

/// Keys that only some algorithms have a use for.
struct Use {
  std::string_view name;
  std::array<Algorithm, 2> algorithms;
};
constexpr std::array kUses{
    Use{"burst", {Algorithm::token_bucket, Algorithm::token_bucket}},
    Use{"delay", {Algorithm::leaky_bucket, Algorithm::leaky_bucket}},
    Use{"queue", {Algorithm::leaky_bucket, Algorithm::leaky_bucket}},
    Use{"slots", {Algorithm::sliding_window, Algorithm::sliding_window}},
    Use{"ttl", {Algorithm::concurrency, Algorithm::concurrency}},
    Use{"calendar", {Algorithm::fixed_window, Algorithm::fixed_window}},
    Use{"align", {Algorithm::fixed_window, Algorithm::fixed_window}},
    Use{"count_denied", {Algorithm::fixed_window, Algorithm::fixed_window}},
    Use{"allow_large_log", {Algorithm::sliding_log, Algorithm::sliding_log}},
};

constexpr std::array<std::string_view, 3> kNotYet{"local_share", "timeout", "lease"};

constexpr std::uint64_t kMaxPlainRate = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kLargeLog = 10'000;

template <typename T, std::size_t N>
std::vector<std::string_view> names_of(const std::array<Named<T>, N>& words) {
  std::vector<std::string_view> names;
  names.reserve(N);
  for (const Named<T>& word : words) names.push_back(word.name);
  return names;
}

template <typename T, std::size_t N>
std::string_view name_in(const std::array<Named<T>, N>& words, T value) {
  const auto* word = std::ranges::find(words, value, &Named<T>::value);
  return word == words.end() ? std::string_view{} : word->name;
}

/// One word of a list; anything else is a finding.
template <typename T, std::size_t N>
std::optional<T> read_word(const FieldReader& fields, std::string_view field, const std::array<Named<T>, N>& words,
                           Findings& findings) {
  const std::optional<std::string_view> text = fields.text(field);
  if (!text) return std::nullopt;
  const auto* word = std::ranges::find(words, *text, &Named<T>::name);
  if (word != words.end()) return word->value;
  const std::vector<std::string_view> names = names_of(words);
  const std::string_view meant = nearest(*text, names);
  findings.error(fields.find(field)->value->position,
                 fmt::format("`{}` must be one of {}, found {}{}", field, fmt::join(names, ", "), quote(*text),
                             meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
  return std::nullopt;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

class LimitReader {
 public:
  LimitReader(const yaml::Node& map, const LoadOptions& options, Findings& findings)
      : map_(map), fields_(map, findings), options_(options), findings_(findings) {}

  std::optional<LimitText> read() {
    const std::size_t errors_before = findings_.errors();
    check_names(fields_, Place::rate_limit, findings_);
    has_odd_names_ = findings_.errors() != errors_before;
    refuse_what_is_not_built();
    if (const auto name = fields_.text("name")) text_.name = *name;
    read_replaces();
    text_.unlimited = fields_.boolean("unlimited").value_or(false);
    if (text_.unlimited) {
      check_unlimited();
    } else {
      read_numbers();
      text_.holds = read_word(fields_, "delay", kDelayUses, findings_).value_or(false);
      text_.denial = read_denial(fields_, findings_);
      text_.overflow = read_overflow(fields_, options_, findings_);
      if (findings_.errors() == errors_before) check_numbers();
    }
    if (findings_.errors() != errors_before) return std::nullopt;
    return std::move(text_);
  }

 private:
  /// Where to point for a key: at its value, or at the limit when it is absent.
  [[nodiscard]] yaml::Position place_of(std::string_view name) const {
    const Field* field = fields_.find(name);
    return field == nullptr ? map_.position : field->value->position;
  }
  [[nodiscard]] bool has(std::string_view name) const { return fields_.find(name) != nullptr; }

  void refuse_what_is_not_built() {
    for (const std::string_view name : kNotYet) {
      const Field* field = fields_.find(name);
      if (field != nullptr) {
        findings_.error(field->key->position, fmt::format("`{}` is not supported by this version", name));
      }
    }
  }

  void read_replaces() {
    for (const yaml::Node* item : fields_.maps("replaces")) {
      const FieldReader fields(*item, findings_);
      check_names(fields, Place::replaces, findings_);
      const std::string_view name = fields.text("name").value_or("");
      if (name.empty()) {
        findings_.error(item->position, "an item of `replaces` needs the `name` of another limit, found none");
      } else if (name == text_.name) {
        findings_.error(item->position, fmt::format("a limit cannot replace itself: {} is its own name", quote(name)));
      } else {
        text_.replaces.emplace_back(name);
      }
    }
  }

  void check_unlimited() {
    if (const auto unit = fields_.text("unit"); unit && !unit->empty()) {
      if (find_unit(*unit)) {
        findings_.error(place_of("unit"),
                        fmt::format("an unlimited limit has no `unit`, found {}; remove one of the two", quote(*unit)));
      } else {
        findings_.warning(place_of("unit"), "`unit` does nothing beside `unlimited`");
      }
    }
    if (has("requests_per_unit")) {
      findings_.warning(place_of("requests_per_unit"), "`requests_per_unit` does nothing beside `unlimited`");
    }
    for (const std::string_view name :
         {"algorithm", "burst", "period", "calendar", "align", "queue", "slots", "ttl", "count_denied",
          "on_store_failure", "allow_large_log", "overflow", "delay", "message", "body", "content_type"}) {
      const Field* field = fields_.find(name);
      if (field != nullptr) {
        findings_.error(field->key->position, fmt::format("`{}` has no use beside `unlimited`", name));
      }
    }
  }

  void read_numbers() {
    Limit& numbers = text_.numbers;
    const bool has_algorithm = has("algorithm");
    const auto algorithm = read_word(fields_, "algorithm", kAlgorithms, findings_);
    numbers.algorithm = algorithm.value_or(Algorithm::fixed_window);
    if (algorithm || !has_algorithm) check_uses();
    const std::uint64_t least = numbers.algorithm == Algorithm::leaky_bucket ? 1 : 0;
    numbers.rate = fields_.number("requests_per_unit", least, has_algorithm ? kMaxRate : kMaxPlainRate).value_or(0);
    // Beside a name that nobody knows it is more likely misspelt than left out.
    if (!has("requests_per_unit") && !has_odd_names_) {
      findings_.warning(map_.position, "`requests_per_unit` is absent, which means 0: every request is denied");
    }
    text_.requests_per_unit = static_cast<std::uint32_t>(std::min(numbers.rate, kMaxPlainRate));
    read_window();
    read_calendar();
    numbers.burst = fields_.number("burst", 1, kMaxTokens).value_or(numbers.rate);
    numbers.queue = fields_.number("queue", 0, kMaxTokens - 1).value_or(0);
    numbers.slots = static_cast<std::uint32_t>(fields_.number("slots", 1, 1'000).value_or(1));
    if (const auto ttl = duration("ttl")) numbers.ttl = *ttl;
    numbers.count_denied = fields_.boolean("count_denied").value_or(false);
    text_.on_store_failure = read_on_store_failure(fields_, findings_);
  }

  void check_uses() {
    const Algorithm algorithm = text_.numbers.algorithm;
    const std::string_view name =
        has("algorithm") ? fields_.text("algorithm").value_or("") : std::string_view("fixed_window (the default)");
    for (const Use& use : kUses) {
      const Field* field = fields_.find(use.name);
      if (field == nullptr || std::ranges::find(use.algorithms, algorithm) != use.algorithms.end()) continue;
      findings_.error(field->key->position, fmt::format("`{}` has no use with algorithm {}; it belongs to {}", use.name,
                                                        name, name_in(kAlgorithms, use.algorithms.front())));
    }
    if (algorithm != Algorithm::concurrency) return;
    for (const std::string_view unused : {"unit", "period"}) {
      const Field* field = fields_.find(unused);
      if (field != nullptr) {
        findings_.error(field->key->position,
                        fmt::format("`{}` has no use with algorithm concurrency; its leases have a `ttl`", unused));
      }
    }
  }

  static std::optional<Unit> find_unit(std::string_view text) {
    const auto* unit = std::ranges::find(kUnits, lower(text), &Named<Unit>::name);
    return unit == kUnits.end() ? std::nullopt : std::optional(unit->value);
  }

  void read_window() {
    if (text_.numbers.algorithm == Algorithm::concurrency) return;
    const bool has_unit = has("unit");
    const bool has_period = has("period");
    if (has_unit && has_period) {
      findings_.error(place_of("period"), "give `unit` or `period`, found both");
    } else if (has_period) {
      if (const auto period = duration("period")) {
        text_.numbers.period = *period;
        for (const Named<Unit>& unit : kUnits) {
          if (length_of(unit.value) == *period) text_.unit = unit.value;
        }
      }
    } else if (!has_unit) {
      findings_.error(map_.position, fmt::format("expected a `unit` ({}) or a `period` (such as 10s), found neither",
                                                 fmt::join(names_of(kUnits), ", ")));
    } else if (const auto text = fields_.text("unit")) {
      if (const auto unit = find_unit(*text)) {
        text_.unit = *unit;
        text_.numbers.period = length_of(*unit);
      } else {
        findings_.error(place_of("unit"), fmt::format("`unit` must be one of {}, found {}",
                                                      fmt::join(names_of(kUnits), ", "), quote(*text)));
      }
    }
  }

  void read_calendar() {
    const auto align = read_word(fields_, "align", kAligns, findings_);
    if (align) text_.numbers.align = *align;
    const Field* field = fields_.find("calendar");
    if (field == nullptr && text_.numbers.align != Align::calendar) return;
    if (align && *align != Align::calendar) {
      findings_.error(place_of("align"),
                      fmt::format("`align` beside `calendar` must be calendar, found {}", name_in(kAligns, *align)));
    }
    text_.numbers.align = Align::calendar;
    const std::optional<Calendar::Unit> unit = calendar_unit(text_.unit);
    if (has("period")) {
      findings_.error(place_of("period"), "`period` has no use in a calendar; give a `unit` from day to year");
    } else if (unit) {
      text_.numbers.calendar.unit = *unit;
    } else if (text_.unit != Unit::unknown) {
      findings_.error(
          place_of("unit"),
          fmt::format("`unit` in a calendar must be one of day, week, month, year, found {}", name_of(text_.unit)));
    }
    if (field == nullptr) return;
    if (field->value->kind != yaml::Node::Kind::map) {
      findings_.error(
          field->value->position,
          fmt::format("`calendar` must be a map with `timezone` and `anchor_day`, found {}", described(*field->value)));
      return;
    }
    const FieldReader fields(*field->value, findings_);
    check_names(fields, Place::calendar, findings_);
    if (const auto zone = fields.text("timezone")) {
      text_.numbers.calendar.timezone = *zone;
      // Here, as the limit as a whole is looked at only when all of its parts are good.
      const auto opened = algorithm::open_calendar(text_.numbers.calendar, algorithm::Tick::nanosecond);
      if (!opened) findings_.error(field->value->position, opened.error().message);
    }
    if (const auto day = fields.number("anchor_day", 1, 31)) {
      text_.numbers.calendar.anchor_day = static_cast<int>(*day);
      if (text_.unit != Unit::month && text_.unit != Unit::unknown) {
        findings_.error(fields.find("anchor_day")->key->position,
                        fmt::format("`anchor_day` is for months, found unit {}", name_of(text_.unit)));
      }
    }
  }

  static std::optional<Calendar::Unit> calendar_unit(Unit unit) {
    switch (unit) {
      case Unit::day:
        return Calendar::Unit::day;
      case Unit::week:
        return Calendar::Unit::week;
      case Unit::month:
        return Calendar::Unit::month;
      case Unit::year:
        return Calendar::Unit::year;
      default:
        return std::nullopt;
    }
  }

  std::optional<nanoseconds> duration(std::string_view name) {
    const std::optional<std::string_view> text = fields_.text(name);
    if (!text) return std::nullopt;
    const Result<nanoseconds> parsed = parse_duration(*text);
    if (!parsed) {
      findings_.error(place_of(name), fmt::format("`{}`: {}", name, parsed.error().message));
      return std::nullopt;
    }
    if (*parsed < std::chrono::microseconds(1) || *parsed > kMaxPeriod || parsed->count() % 1'000 != 0) {
      findings_.error(place_of(name),
                      fmt::format("`{}` must be from 1us to 366d in whole microseconds, found {}", name, quote(*text)));
      return std::nullopt;
    }
    return *parsed;
  }

  /// The limit as a whole: what its algorithm says, and what is allowed but seldom meant.
  void check_numbers() {
    const Limit& numbers = text_.numbers;
    if (numbers.algorithm == Algorithm::token_bucket && numbers.burst == 0) {
      findings_.error(place_of("requests_per_unit"),
                      "a token bucket needs a `burst` of at least 1, found 0 (from `requests_per_unit`); to deny every "
                      "request use algorithm fixed_window");
      return;
    }
    if (numbers.algorithm == Algorithm::sliding_log && numbers.rate > kLargeLog &&
        !fields_.boolean("allow_large_log").value_or(false)) {
      findings_.error(place_of("requests_per_unit"),
                      fmt::format("a sliding log keeps an entry for each request: above {} it needs "
                                  "`allow_large_log: true`, found {}",
                                  kLargeLog, numbers.rate));
    }
    const std::vector<algorithm::LimitProblem> problems = algorithm::validate(numbers);
    for (const algorithm::LimitProblem& problem : problems) {
      const std::string_view field = problem.field == "rate" ? std::string_view("requests_per_unit")
                                                             : problem.field.substr(0, problem.field.find('.'));
      findings_.error(place_of(field), fmt::format("`{}` {}", field, problem.message));
    }
    if (!problems.empty()) return;
    const auto compiled =
        algorithm::CompiledLimit::compile(numbers, algorithm::Tick::nanosecond, &algorithm::open_calendar);
    if (!compiled) {
      // It begins with the field.
      const std::string& message = compiled.error().message;
      const std::string_view field = std::string_view(message).substr(0, message.find_first_of(":."));
      findings_.error(place_of(has(field) ? field : std::string_view("calendar")), message);
      return;
    }
    if (options_.refuse_limit) {
      if (const auto refusal = options_.refuse_limit(numbers)) findings_.error(map_.position, *refusal);
    }
    warn_of_small_burst();
  }

  void warn_of_small_burst() {
    const Limit& numbers = text_.numbers;
    if (numbers.algorithm != Algorithm::token_bucket) return;
    const auto in_a_second =
        static_cast<long double>(numbers.rate) * 1e9L / static_cast<long double>(numbers.period.count());
    if (static_cast<long double>(numbers.burst) >= in_a_second) return;
    findings_.warning(
        place_of("burst"),
        fmt::format("a burst of {} is less than what comes back in one second ({:.0f}): requests that come in "
                    "bunches are denied at rates well below the limit",
                    numbers.burst, static_cast<double>(in_a_second)));
  }

  const yaml::Node& map_;
  FieldReader fields_;
  const LoadOptions& options_;
  Findings& findings_;
  LimitText text_;
  bool has_odd_names_ = false;
};

}  // namespace

std::optional<LimitText> read_limit(const yaml::Node& map, const LoadOptions& options, Findings& findings) {
  return LimitReader(map, options, findings).read();
}

std::optional<OnStoreFailure> read_on_store_failure(const FieldReader& fields, Findings& findings) {
  return read_word(fields, "on_store_failure", kFailureAnswers, findings);
}

nanoseconds length_of(Unit unit) {
  switch (unit) {
    case Unit::unknown:
      return nanoseconds(0);
    case Unit::second:
      return seconds(1);
    case Unit::minute:
      return minutes(1);
    case Unit::hour:
      return hours(1);
    case Unit::day:
      return hours(24);
    case Unit::week:
      return hours(24 * 7);
    case Unit::month:
      return hours(24 * 30);
    case Unit::year:
      return hours(24 * 365);
  }
  return nanoseconds(0);
}

std::string_view name_of(Unit unit) {
  const std::string_view name = name_in(kUnits, unit);
  return name.empty() ? std::string_view("unknown") : name;
}

}  // namespace sluice::policy
