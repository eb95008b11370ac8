#include "queue/overflow_of.h"

namespace sluice::queue {

const policy::Rule* overflow_of(const limiter::Answer& answer) {
  if (answer.allowed || !answer.has_figures || answer.deciding == nullptr || !answer.deciding->overflow) return nullptr;
  if (answer.decision.retry_after.is_never()) return nullptr;
  for (const limiter::Status& status : answer.statuses) {
    if (status.over_limit && status.rule != nullptr && !status.rule->overflow) return nullptr;
  }
  return answer.deciding;
}

std::string group_of(const Message& message, std::size_t descriptor) {
  if (!message.key.empty()) return message.key;
  std::string group;
  for (const auto& [key, value] : message.descriptors[descriptor].entries) {
    group += std::to_string(key.size());
    group += ':';
    group += key;
    group += '=';
    group += value;
    group += ',';
  }
  return group;
}

}  // namespace sluice::queue
