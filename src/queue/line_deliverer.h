// Delivers as lines of JSON to a file descriptor.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "queue/deliverer.h"

namespace sluice::queue {

/// One object a line: ticket, key, method, path, headers, body (base64 as "body_base64" where it is not UTF-8),
/// attempt, may_be_duplicate. Lines that are due together are written together; delivered once the system has taken
/// them. Those of which it takes none or a part are not the requests' fault: `broken` when nobody reads any more, else
/// `hindered`, and a line that was cut is ended before the next one.
class LineDeliverer final : public Deliverer {
 public:
  /// `descriptor` stays the caller's.
  explicit LineDeliverer(int descriptor) : descriptor_(descriptor) {}
  void start(const Attempt& attempt, Done done) override;
  void flush() override;

 private:
  struct Waiting {
    std::size_t end = 0;  ///< of its line in lines_
    Done done;
  };

  const int descriptor_;
  std::string lines_;
  bool is_cut_ = false;  ///< the last byte written is not a line's end
  std::vector<Waiting> waiting_;
};

}  // namespace sluice::queue
