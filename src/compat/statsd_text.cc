#include "compat/statsd_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::compat {
namespace {

constexpr const char* kCalls = "calls";  // what is remembered of the timer, under names that no counter has
constexpr const char* kMilliseconds = "milliseconds";

}  // namespace

StatsdText::StatsdText(const config::EnvoyOptions& options)
    : is_dogstatsd_(options.statistics == config::EnvoyOptions::Statistics::dogstatsd), mogrify_(options.mogrifiers) {
  auto tags = options.extra_tags;
  std::ranges::sort(tags);
  for (const auto& [name, value] : tags) {
    name_tags_ += fmt::format(".__{}={}", name, value);
    dog_tags_ += fmt::format("{}{}:{}", dog_tags_.empty() ? "" : ",", name, value);
  }
}

std::vector<std::string> StatsdText::lines(const Statistics& statistics) {
  std::vector<std::string> lines;
  for (const Statistic& counter : statistics.counters) {
    const std::uint64_t grown = counter.value - std::min(counter.value, sent_[counter.name]);
    if (grown > 0) lines.push_back(line(counter.name, fmt::format("{}|c", grown)));
  }
  if (const std::uint64_t calls = statistics.service.calls - sent_[kCalls]; calls > 0) {
    const auto took = static_cast<double>(statistics.service.milliseconds - sent_[kMilliseconds]);
    const auto count = static_cast<double>(calls);
    lines.push_back(line(kResponseTime, fmt::format("{:.6f}|ms|@{:.9f}", took / count, 1 / count)));
  }
  last_ = statistics;
  return lines;
}

void StatsdText::sent() {
  for (const Statistic& counter : last_.counters) sent_[counter.name] = counter.value;
  sent_[kCalls] = last_.service.calls;
  sent_[kMilliseconds] = last_.service.milliseconds;
}

std::string StatsdText::line(const std::string& name, const std::string& value_and_type) const {
  if (!is_dogstatsd_) return fmt::format("{}{}:{}\n", name, name_tags_, value_and_type);
  const Tagged tagged = mogrify_(name);
  std::string tags = dog_tags_;
  if (!tagged.tags.empty()) tags += (tags.empty() ? "" : ",") + tagged.tags;
  return fmt::format("{}:{}{}{}\n", tagged.name, value_and_type, tags.empty() ? "" : "|#", tags);
}

}  // namespace sluice::compat
