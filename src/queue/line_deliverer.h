// Delivers as lines of JSON to a file descriptor.
#pragma once

#include <string>

#include "queue/deliverer.h"

namespace sluice::queue {

/// One object a line: ticket, key, method, path, headers, body (base64 as "body_base64" where it is not UTF-8),
/// attempt, may_be_duplicate. A line is written in one piece; delivered once the system has taken it.
class LineDeliverer final : public Deliverer {
 public:
  /// `descriptor` stays the caller's.
  explicit LineDeliverer(int descriptor) : descriptor_(descriptor) {}
  void start(const Attempt& attempt, Done done) override;

 private:
  const int descriptor_;
  std::string line_;
};

}  // namespace sluice::queue
