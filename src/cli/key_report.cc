#include "cli/key_report.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "base/duration.h"
#include "base/utf8.h"
#include "cli/printable.h"
#include "front/http/answer_json.h"
#include "front/http/json_text.h"
#include "limiter/words.h"
#include "sluice/clock.h"
#include "store/redis/batch.h"
#include "store/redis/check_call.h"
#include "store/redis/key.h"
#include "store/redis/packed.h"
#include "store/redis/redis_limit.h"
#include "store/redis/resp_writer.h"
#include "store/redis/script.h"

namespace sluice::cli {
namespace {

using store::redis::Reply;
using store::redis::text_of;
using store::redis::Unpacker;

class PlainCheck final : public store::Check {
 public:
  void complete() override {}
};

constexpr std::array<std::pair<char, Algorithm>, 6> kKinds{{{'t', Algorithm::token_bucket},
                                                            {'l', Algorithm::leaky_bucket},
                                                            {'f', Algorithm::fixed_window},
                                                            {'s', Algorithm::sliding_window},
                                                            {'g', Algorithm::sliding_log},
                                                            {'c', Algorithm::concurrency}}};

/// The numbers that a value says of itself, the others at their greatest; nothing for a calendar. See docs/redis.md.
std::optional<Limit> numbers_of(Algorithm algorithm, std::string_view value, bool& knows_rate) {
  Limit limit{.algorithm = algorithm, .rate = kMaxRate};
  Unpacker bytes(value.substr(std::min<std::size_t>(2, value.size())));
  const auto microseconds = [](std::uint64_t count) {
    return std::chrono::microseconds(static_cast<std::int64_t>(count));
  };
  switch (algorithm) {
    case Algorithm::token_bucket:
    case Algorithm::leaky_bucket:
      limit.burst = bytes.take<7>();
      limit.rate = bytes.take<5>();
      limit.period = microseconds(bytes.take<6>());
      limit.queue = limit.burst - 1;
      knows_rate = true;
      break;
    case Algorithm::fixed_window:
      limit.align = static_cast<Align>(bytes.take<1>());
      limit.period = microseconds(bytes.take<6>());
      if (limit.align != Align::epoch && limit.align != Align::first_hit) return std::nullopt;
      break;
    case Algorithm::sliding_window:
      limit.slots = static_cast<std::uint32_t>(bytes.take<2>());
      limit.period = microseconds(bytes.take<6>() * limit.slots);
      break;
    case Algorithm::sliding_log:
      limit.period = microseconds(bytes.take<6>());
      break;
    case Algorithm::concurrency:
      break;
  }
  if (bytes.was_short() || !store::redis::RedisLimit::compile(limit)) return std::nullopt;
  return limit;
}

/// When a value was changed last, in µs.
std::optional<std::int64_t> changed_at(Algorithm algorithm, std::string_view value) {
  std::size_t at = 0;
  switch (algorithm) {
    case Algorithm::token_bucket:
    case Algorithm::leaky_bucket:
      at = 33;
      break;
    case Algorithm::fixed_window:
      at = 24;
      break;
    case Algorithm::sliding_window:
      at = 10;
      break;
    case Algorithm::sliding_log:
      at = 8;
      break;
    case Algorithm::concurrency:
      at = 16;
      break;
  }
  if (value.size() < at + 7) return std::nullopt;
  return Unpacker(value.substr(at)).take_signed<7>();
}

std::string words_of(const Limit& limit, bool knows_rate) {
  std::string text(limiter::algorithm_name(limit.algorithm));
  std::ranges::replace(text, '_', ' ');
  if (limit.algorithm == Algorithm::concurrency) {
    return knows_rate ? text + ", " + std::to_string(limit.rate) + " at once, for " + to_text(limit.ttl) : text;
  }
  text += knows_rate ? ", " + std::to_string(limit.rate) + " per " : ", a rate that the value does not tell per ";
  if (limit.algorithm == Algorithm::fixed_window && limit.align == Align::calendar) return text + "calendar window";
  text += to_text(limit.period);
  if (limit.algorithm == Algorithm::token_bucket) text += ", burst " + std::to_string(limit.burst);
  if (limit.algorithm == Algorithm::leaky_bucket) text += ", queue " + std::to_string(limit.queue);
  if (limit.algorithm == Algorithm::sliding_window) text += ", slots " + std::to_string(limit.slots);
  if (limit.algorithm == Algorithm::fixed_window && limit.align == Align::first_hit) text += " from the first hit";
  return text;
}

std::string hex_of(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    hex += digits[static_cast<unsigned char>(c) >> 4U];
    hex += digits[static_cast<unsigned char>(c) & 15U];
  }
  return hex;
}

std::optional<Error> error_of(const Result<Reply>& answer) {
  return answer ? std::nullopt : std::optional(answer.error());
}

}  // namespace

KeyReader::KeyReader(RedisServers& servers, std::string prefix, const policy::Policy* policy)
    : servers_(servers), prefix_(std::move(prefix)), naming_(prefix_, servers.groups()) {
  if (policy == nullptr) return;
  for (const policy::Rule* rule : policy->rules()) rules_.emplace(rule->counted.identity, rule);
}

std::string KeyReader::key_of(const store::CountedLimit& limit, std::string_view key) const {
  std::string name;
  store::redis::append_redis_key(name, naming_, limit.identity, key);
  return name;
}

std::string KeyReader::shape() const {
  return prefix_ + (naming_.groups == 0 ? "{first value}limit" : "{group}first value}limit");
}

Result<KeyReport> KeyReader::read(const std::string& key) {
  KeyReport report;
  report.key = key;
  const auto parts = KeyName::parse(key, naming_);
  if (parts) {
    report.identity = parts->identity;
    if (const auto rule = rules_.find(parts->identity); rule != rules_.end()) {
      report.limit_name = rule->second->label();
      report.numbers = rule->second->counted.numbers;
      report.knows_rate = true;
    }
  }
  const auto type = servers_.ask(key, {"TYPE", key});
  if (!type) return type.error();
  report.type = text_of(**type);
  report.found = report.type != "none";
  if (report.found) {
    const auto ttl = servers_.ask(key, {"PTTL", key});
    if (!ttl) return ttl.error();
    if ((*ttl)->integer >= 0) report.ttl = std::chrono::milliseconds((*ttl)->integer);
    if ((*ttl)->integer == -1) report.problem = "it never expires";
  }
  if (!parts) {
    report.problem = "the name is not one of Sluice's: " + shape();
    return report;
  }
  if (report.found) {
    if (auto problem = read_value(report)) return *std::move(problem);
  }
  if (report.numbers && (report.problem.empty() || report.problem == "it never expires")) {
    if (auto problem = ask_script(report)) return *std::move(problem);
  }
  return report;
}

std::optional<Error> KeyReader::read_value(KeyReport& report) {
  const bool is_string = report.type == "string";
  if (!is_string && report.type != "zset") {
    report.problem = "a " + report.type + " is no state of a limit";
    return std::nullopt;
  }
  const auto answer = is_string ? servers_.ask(report.key, {"GETRANGE", report.key, "0", "63"})
                                : servers_.ask(report.key, {"ZRANGE", report.key, "0", "0"});
  if (auto problem = error_of(answer)) return problem;
  const redisReply& reply = **answer;
  const redisReply* head = is_string ? &reply : (reply.elements > 0 ? reply.element[0] : nullptr);
  const std::string_view value = head != nullptr && head->str != nullptr ? text_of(*head) : std::string_view();
  const auto* kind = value.size() < 2 || value[0] != '\x01'
                         ? kKinds.end()
                         : std::ranges::find(kKinds, value[1], [](const auto& one) { return one.first; });
  if (kind == kKinds.end()) {
    report.problem = "a foreign value: it does not begin as a state does";
    return std::nullopt;
  }
  if (report.numbers && report.numbers->algorithm != kind->second) {
    report.problem = "a foreign value: the state of a " + std::string(limiter::algorithm_name(kind->second));
    return std::nullopt;
  }
  if (!report.numbers) {
    report.numbers = numbers_of(kind->second, value, report.knows_rate);
    if (!report.numbers && kind->second != Algorithm::fixed_window) {
      report.problem = "a foreign value: its numbers are out of range";
    }
  }
  auto at = changed_at(kind->second, value);
  if (kind->second == Algorithm::sliding_log) {
    const auto newest = servers_.ask(report.key, {"ZRANGE", report.key, "-1", "-1"});
    if (auto problem = error_of(newest)) return problem;
    if ((*newest)->elements == 1 && (*newest)->element[0]->len == 21) {
      at = std::max(at.value_or(0), Unpacker(text_of(*(*newest)->element[0])).take_signed<7>());
    }
  }
  const auto time = servers_.ask(report.key, {"TIME"});
  if (auto problem = error_of(time)) return problem;
  if (at && (*time)->elements == 2) {
    const std::int64_t now = std::atoll((*time)->element[0]->str) * 1'000'000 + std::atoll((*time)->element[1]->str);
    report.age = std::chrono::microseconds(std::max<std::int64_t>(0, now - *at));
  }
  return std::nullopt;
}

/// By the script that decides: it looks, and writes nothing.
std::optional<Error> KeyReader::ask_script(KeyReport& report) {
  const auto parts = KeyName::parse(report.key, naming_);
  auto compiled = store::redis::RedisLimit::compile(*report.numbers);
  if (!compiled) {
    report.problem = compiled.error().message;
    return std::nullopt;
  }
  const store::CountedLimit limit{.numbers = *report.numbers, .identity = parts->identity};
  const store::Charge charge{.limit = &limit, .key = parts->key, .cost = 0};
  const store::Verb peek = store::Verb::peek();
  PlainCheck check;
  check.charges = {&charge, 1};
  check.decisions = {&report.figures, 1};
  check.verb = &peek;
  store::redis::Batch batch;
  const std::array<std::shared_ptr<const store::redis::RedisLimit>, 1> limits{*std::move(compiled)};
  if (!batch.add(check, limits, naming_, SystemClock().now(), 0)) return Error{"no room for one key"};
  batch.prepare();
  std::string command;
  store::redis::append_command(command, 2 + store::redis::words_of_call(batch));
  store::redis::append_bulk(command, "EVAL");
  store::redis::append_bulk(command, store::redis::check_script().text);
  store::redis::append_call(command, batch);
  const auto answer = servers_.ask_raw(report.key, command);
  if (auto problem = error_of(answer)) return problem;
  store::Failure failure = store::redis::AnswerReader().read(**answer, batch);
  if (failure == store::Failure::none) failure = batch.requests()[0].failure;
  if (failure != store::Failure::none) {
    report.problem = store::to_text(failure);
    return std::nullopt;
  }
  report.has_figures = true;
  report.used = report.figures.limit - std::min(report.figures.limit, report.figures.remaining);
  return std::nullopt;
}

std::string to_words(const KeyReport& report) {
  std::string text = printable(report.key) + '\n';
  const auto line = [&text](std::string_view name, std::string_view value) {
    text.append("  ").append(name).append(": ").append(printable(value)).append("\n");
  };
  if (!report.limit_name.empty()) line("limit", report.limit_name);
  if (report.numbers) line("algorithm", words_of(*report.numbers, report.knows_rate));
  if (!report.found) line("state", "none: as never used");
  if (!report.problem.empty()) line("problem", report.problem);
  if (report.has_figures && report.knows_rate) {
    line("remaining", std::to_string(report.figures.remaining) + " of " + std::to_string(report.figures.limit));
  }
  if (report.has_figures && !report.knows_rate) line("used", std::to_string(report.used));
  if (report.has_figures) {
    line("reset after",
         report.figures.reset_after.is_never() ? "never" : to_rounded_text(report.figures.reset_after.value()));
  }
  if (report.ttl) line("expires in", to_rounded_text(*report.ttl));
  if (report.age) line("last changed", to_rounded_text(*report.age) + " ago");
  return text;
}

std::string to_json(const KeyReport& report) {
  std::string out = R"({"key":)" + json_text(report.key);
  if (!is_utf8(report.key)) {
    // So that nothing of the name is lost.
    http::append_name(out, "key_hex");
    out += '"' + hex_of(report.key) + '"';
  }
  http::append_name(out, "found");
  out += report.found ? "true" : "false";
  const auto text = [&out](std::string_view name, std::string_view value) {
    http::append_name(out, name);
    out += json_text(value);
  };
  if (report.found) text("type", report.type);
  if (!report.problem.empty()) text("problem", report.problem);
  if (!report.identity.empty()) text("identity", report.identity);
  if (!report.limit_name.empty()) text("limit_name", report.limit_name);
  if (report.numbers) {
    text("algorithm", limiter::algorithm_name(report.numbers->algorithm));
    text("numbers", words_of(*report.numbers, report.knows_rate));
  }
  if (report.has_figures) {
    if (report.knows_rate) {
      http::append_name(out, "limit");
      http::append_unsigned(out, report.figures.limit);
      http::append_name(out, "remaining");
      http::append_unsigned(out, report.figures.remaining);
    }
    http::append_name(out, "used");
    http::append_unsigned(out, report.used);
    http::append_wait(out, "reset_after", report.figures.reset_after);
  }
  if (report.ttl) http::append_wait(out, "ttl", Wait(*report.ttl));
  if (report.age) http::append_wait(out, "age", Wait(*report.age));
  out += '}';
  return out;
}

}  // namespace sluice::cli
