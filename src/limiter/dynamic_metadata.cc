#include "limiter/dynamic_metadata.h"

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <string_view>

namespace sluice::limiter {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 8> kUnits{"UNKNOWN", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR", "WEEK"};

json::object described(const Descriptor& descriptor) {
  json::object object;
  json::array& entries = object["entries"].emplace_array();
  for (const Entry& entry : descriptor.entries) {
    entries.emplace_back(std::string(entry.key) + "=" + std::string(entry.value));
  }
  if (descriptor.limit) {
    const LimitOverride& limit = *descriptor.limit;
    std::string text;
    if (limit.requests_per_unit != 0) text = "requests_per_unit:" + std::to_string(limit.requests_per_unit) + "  ";
    text += "unit:" + std::string(kUnits[static_cast<std::size_t>(limit.unit)]);
    object["limit"] = text;
  }
  if (descriptor.cost) object["hitsAddend"] = *descriptor.cost;
  return object;
}

void merge(const json::object& from, json::object& into) {
  for (const auto& [name, value] : from) {
    json::value* const there = into.if_contains(name);
    if (there != nullptr && there->is_object() && value.is_object()) {
      merge(value.get_object(), there->get_object());
    } else {
      into[name] = value;
    }
  }
}

}  // namespace

std::string described(const Request& request) {
  json::object object;
  object["domain"] = request.domain;
  json::array& descriptors = object["descriptors"].emplace_array();
  for (const Descriptor& descriptor : request.descriptors) descriptors.emplace_back(described(descriptor));
  if (request.has_cost) object["hitsAddend"] = request.cost;
  return json::serialize(object);
}

void add_metadata(std::span<const Status> statuses, std::string& object) {
  json::object merged;
  for (const Status& status : statuses) {
    if (status.over_limit || status.rule == nullptr || status.rule->unlimited || status.rule->metadata.empty())
      continue;
    boost::system::error_code error;
    const json::value metadata = json::parse(status.rule->metadata, error);
    if (!error && metadata.is_object()) merge(metadata.get_object(), merged);
  }
  if (merged.empty()) return;
  object.pop_back();
  object += ",\"metadata\":" + json::serialize(merged) + "}";
}

}  // namespace sluice::limiter
