#include "queue/ticket_replies.h"

#include <chrono>
#include <cstddef>

namespace sluice::queue {
namespace {

constexpr std::int64_t kReportAge = 10'000'000;  // µs; older ones are of drainers that have ended

/// "time held oldest" of one drainer.
void add_drainer(std::string_view text, DrainReport& report) {
  const std::size_t first = text.find(' ');
  const std::size_t second = text.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return;
  if (utc_us() - number_of<std::int64_t>(text) > kReportAge) return;
  ++report.drainers;
  report.held += number_of<std::uint64_t>(text.substr(first + 1));
  const auto oldest = number_of<std::int64_t>(text.substr(second + 1));
  if (oldest != 0 && (report.oldest_us == 0 || oldest < report.oldest_us)) report.oldest_us = oldest;
}

}  // namespace

std::string_view text_of(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_STRING && reply.type != REDIS_REPLY_STATUS && reply.type != REDIS_REPLY_ERROR)
    return {};
  return {reply.str, static_cast<std::size_t>(reply.len)};
}

std::int64_t utc_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

DrainReport report_of(const redisReply& reply) {
  DrainReport report;
  for (std::size_t i = 0; i + 1 < reply.elements; i += 2) {
    const std::string_view name = text_of(*reply.element[i]);
    const std::string_view value = text_of(*reply.element[i + 1]);
    if (name == "delivered") report.delivered = number_of<std::uint64_t>(value);
    if (name == "duplicates") report.duplicates = number_of<std::uint64_t>(value);
    if (name == "dead") report.dead = number_of<std::uint64_t>(value);
    if (name == "expired") report.expired = number_of<std::uint64_t>(value);
    if (name == "foreign") report.foreign = number_of<std::uint64_t>(value);
    if (name.starts_with("drainer:")) add_drainer(value, report);
  }
  return report;
}

}  // namespace sluice::queue
