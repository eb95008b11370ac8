#include "tests/model/trace.h"

#include <array>
#include <stdexcept>

// The header-only form of Boost.JSON: compiled here and nowhere else.
#include <boost/json/src.hpp>

namespace sluice::model {

namespace {

namespace json = boost::json;

template <typename Enum, std::size_t n>
Enum named(std::string_view name, const std::array<std::string_view, n>& names) {
  for (std::size_t i = 0; i < n; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  throw std::invalid_argument("unknown name: " + std::string(name));
}

constexpr std::array<std::string_view, 6> kAlgorithms{"token_bucket",   "leaky_bucket", "fixed_window",
                                                      "sliding_window", "sliding_log",  "concurrency"};
constexpr std::array<std::string_view, 2> kAligns{"epoch", "first_hit"};
constexpr std::array<std::string_view, 4> kUnits{"day", "week", "month", "year"};

std::string text(const json::value& value) { return json::value_to<std::string>(value); }

Calendar parse_calendar(const json::object& object) {
  Calendar calendar;
  calendar.unit = named<Calendar::Unit>(text(object.at("unit")), kUnits);
  if (const auto* zone = object.if_contains("timezone")) calendar.timezone = text(*zone);
  if (const auto* day = object.if_contains("anchor_day")) calendar.anchor_day = day->to_number<int>();
  return calendar;
}

}  // namespace

Operation parse_operation(std::string_view line) {
  const json::object object = json::parse(json::string_view(line.data(), line.size())).as_object();
  Operation operation;
  operation.verb = text(object.at("op"));
  const auto number = [&](const char* name, auto& into) {
    if (const auto* value = object.if_contains(name))
      into = value->to_number<std::remove_reference_t<decltype(into)>>();
  };
  number("now", operation.now);
  number("cost", operation.cost);
  number("reserved", operation.reserved);
  number("actual", operation.actual);
  number("lease", operation.lease);
  if (const auto* at = object.if_contains("at")) operation.at = at->to_number<std::int64_t>();
  if (const auto* charges = object.if_contains("charges")) {
    for (const json::value& charge : charges->as_array()) {
      const json::array& row = charge.as_array();
      operation.charges.push_back({text(row.at(0)), text(row.at(1)), row.at(2).to_number<std::uint64_t>()});
    }
  }
  if (operation.verb == "limit") {
    operation.limit = text(object.at("id"));
    operation.numbers = object;
  } else if (const auto* limit = object.if_contains("limit")) {
    operation.limit = text(*limit);
    operation.key = text(object.at("key"));
  }
  if (const auto* to = object.if_contains("to")) operation.numbers = to->as_object();
  if (const auto* want = object.if_contains("want")) operation.want = want->as_object();
  return operation;
}

std::string operation_line(const Operation& operation) {
  json::object object{{"op", operation.verb}, {"now", operation.now}};
  if (operation.verb == "check" || operation.verb == "peek") {
    json::array charges;
    for (const TracedCharge& charge : operation.charges) {
      charges.push_back(json::array{json::value(charge.limit), json::value(charge.key), json::value(charge.cost)});
    }
    object["charges"] = std::move(charges);
    return json::serialize(object);
  }
  object["limit"] = operation.limit;
  object["key"] = operation.key;
  if (operation.verb == "refund" || operation.verb == "penalize") object["cost"] = operation.cost;
  if (operation.verb == "settle") {
    object["reserved"] = operation.reserved;
    object["actual"] = operation.actual;
  }
  if (operation.at) object["at"] = *operation.at;
  if (operation.verb == "release") object["lease"] = operation.lease;
  if (operation.verb == "set_limit") object["to"] = operation.numbers;
  return json::serialize(object);
}

std::string limit_line(const std::string& id, const Limit& limit, algorithm::Tick tick) {
  const auto ticks = [&](std::chrono::nanoseconds duration) { return duration.count() / nanoseconds_in(tick); };
  const auto name = [](const auto& names, auto value) {
    const std::string_view text = names[static_cast<std::size_t>(value)];
    return json::string(text.data(), text.size());
  };
  json::object object{
      {"op", "limit"}, {"id", id}, {"algorithm", name(kAlgorithms, limit.algorithm)}, {"rate", limit.rate}};
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
      object["burst"] = limit.burst;
      break;
    case Algorithm::leaky_bucket:
      object["queue"] = limit.queue;
      break;
    case Algorithm::sliding_window:
      object["slots"] = limit.slots;
      break;
    case Algorithm::concurrency:
      object["ttl"] = ticks(limit.ttl);
      break;
    case Algorithm::fixed_window:
      if (limit.align == Align::calendar) {
        object["calendar"] = json::object{{"unit", name(kUnits, limit.calendar.unit)},
                                          {"timezone", limit.calendar.timezone},
                                          {"anchor_day", limit.calendar.anchor_day}};
      } else {
        object["align"] = name(kAligns, limit.align);
      }
      if (limit.count_denied) object["count_denied"] = true;
      break;
    case Algorithm::sliding_log:
      break;
  }
  if (limit.algorithm != Algorithm::concurrency && limit.align != Align::calendar)
    object["period"] = ticks(limit.period);
  return json::serialize(object);
}

Algorithm algorithm_named(std::string_view name) { return named<Algorithm>(name, kAlgorithms); }

Limit with_numbers(Limit limit, const json::object& numbers, algorithm::Tick tick) {
  const auto number = [&](const char* name, auto& into) {
    if (const auto* value = numbers.if_contains(name))
      into = value->to_number<std::remove_reference_t<decltype(into)>>();
  };
  const auto duration = [&](const char* name, std::chrono::nanoseconds& into) {
    std::int64_t ticks = into.count() / algorithm::nanoseconds_in(tick);
    number(name, ticks);
    into = std::chrono::nanoseconds(ticks * algorithm::nanoseconds_in(tick));
  };
  if (const auto* name = numbers.if_contains("algorithm")) limit.algorithm = named<Algorithm>(text(*name), kAlgorithms);
  number("rate", limit.rate);
  duration("period", limit.period);
  number("burst", limit.burst);
  number("queue", limit.queue);
  number("slots", limit.slots);
  duration("ttl", limit.ttl);
  if (const auto* align = numbers.if_contains("align")) limit.align = named<Align>(text(*align), kAligns);
  if (const auto* calendar = numbers.if_contains("calendar")) {
    limit.align = Align::calendar;
    limit.calendar = parse_calendar(calendar->as_object());
  }
  if (const auto* count = numbers.if_contains("count_denied")) limit.count_denied = count->as_bool();
  return limit;
}

}  // namespace sluice::model
