#include "adapter/owned_request.h"

#include <cstddef>
#include <span>
#include <string_view>

namespace sluice::adapter {

OwnedRequest::OwnedRequest(const Request& request) : request_(request) {
  std::size_t bytes = request.domain.size();
  std::size_t count = 0;
  for (const Descriptor& descriptor : request.descriptors) {
    count += descriptor.entries.size();
    for (const Entry& entry : descriptor.entries) bytes += entry.key.size() + entry.value.size();
  }
  // Views are taken while it grows, so it must not move.
  texts_.reserve(bytes);
  entries_.reserve(count);
  const auto keep = [this](std::string_view text) {
    const std::size_t begin = texts_.size();
    texts_ += text;
    return std::string_view(texts_).substr(begin);
  };
  request_.domain = keep(request.domain);
  descriptors_.assign(request.descriptors.begin(), request.descriptors.end());
  for (Descriptor& descriptor : descriptors_) {
    const std::size_t begin = entries_.size();
    for (const Entry& entry : descriptor.entries) {
      const std::string_view key = keep(entry.key);
      entries_.push_back({.key = key, .value = keep(entry.value)});
    }
    descriptor.entries = std::span(entries_).subspan(begin);
  }
  request_.descriptors = descriptors_;
}

}  // namespace sluice::adapter
