// What a decoder has read: one request or several, in storage that is used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "limiter/counter_verb.h"
#include "limiter/hold_request.h"
#include "policy/request.h"

namespace sluice::http {

inline constexpr std::size_t kMaxDescriptors = 100;  ///< of one request
inline constexpr std::size_t kMaxEntries = 100;      ///< of one descriptor
inline constexpr std::size_t kMaxRequests = 100;     ///< of one array

/// Why a body was refused. `code` is a literal.
struct DecodeFault {
  std::string_view code;
  std::string message;
};

/// Filled front to back: a request, its descriptors, their entries. Views in it are into the decoded text or its arena.
/// Allocates only while it grows. Not thread-safe.
class RequestBatch {
 public:
  void clear();
  void begin_request();
  void begin_descriptor();
  void add_entry(Entry entry);
  /// Of the request and the descriptor begun last.
  [[nodiscard]] Request& request() { return requests_.back(); }
  /// The request begun last is that of a hold, which it keeps.
  limiter::HoldRequest& set_hold(limiter::Hold hold);
  [[nodiscard]] const limiter::HoldRequest& hold() const { return *holds_.back(); }
  /// Of the request begun last: what is to be done, when it is no check.
  [[nodiscard]] limiter::CounterVerb& verb() { return verbs_.back(); }
  [[nodiscard]] Descriptor& descriptor() { return descriptors_.back(); }
  [[nodiscard]] std::size_t descriptor_count() const { return descriptors_.size() - request_parts_.back().begin; }
  [[nodiscard]] std::span<const Entry> entries() const;
  /// Ties the parts together; valid until the next change.
  [[nodiscard]] std::span<const Request> requests();
  /// One per request.
  [[nodiscard]] std::span<const limiter::CounterVerb> verbs() const { return verbs_; }
  /// Where decoded strings live.
  [[nodiscard]] std::string& arena() { return arena_; }

 private:
  struct Part {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  std::vector<Request> requests_;
  std::vector<std::unique_ptr<limiter::HoldRequest>> holds_;  ///< one per request; null: none
  std::vector<limiter::CounterVerb> verbs_;
  std::vector<Descriptor> descriptors_;
  std::vector<Entry> entries_;
  std::vector<Part> request_parts_;
  std::vector<Part> descriptor_parts_;
  std::string arena_;
};

}  // namespace sluice::http
