#include "front/http/request_batch.h"

#include <utility>

namespace sluice::http {

void RequestBatch::clear() {
  requests_.clear();
  holds_.clear();
  verbs_.clear();
  descriptors_.clear();
  entries_.clear();
  request_parts_.clear();
  descriptor_parts_.clear();
}

void RequestBatch::begin_request() {
  requests_.emplace_back();
  holds_.emplace_back();
  verbs_.emplace_back();
  request_parts_.push_back({descriptors_.size(), descriptors_.size()});
}

void RequestBatch::begin_descriptor() {
  descriptors_.emplace_back();
  request_parts_.back().end = descriptors_.size();
  descriptor_parts_.push_back({entries_.size(), entries_.size()});
}

void RequestBatch::add_entry(Entry entry) {
  entries_.push_back(entry);
  descriptor_parts_.back().end = entries_.size();
}

limiter::HoldRequest& RequestBatch::set_hold(limiter::Hold hold) {
  holds_.back() = std::make_unique<limiter::HoldRequest>(std::move(hold));
  return *holds_.back();
}

std::span<const Entry> RequestBatch::entries() const {
  const Part part = descriptor_parts_.back();
  return std::span(entries_).subspan(part.begin, part.end - part.begin);
}

std::span<const Request> RequestBatch::requests() {
  for (std::size_t i = 0; i < descriptors_.size(); ++i) {
    const Part part = descriptor_parts_[i];
    descriptors_[i].entries = std::span<const Entry>(entries_).subspan(part.begin, part.end - part.begin);
  }
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const Part part = request_parts_[i];
    if (holds_[i] != nullptr) {
      requests_[i] = holds_[i]->request();
      continue;
    }
    requests_[i].descriptors = std::span<const Descriptor>(descriptors_).subspan(part.begin, part.end - part.begin);
  }
  return requests_;
}

}  // namespace sluice::http
