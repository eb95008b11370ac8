// A request with the texts that it refers to.
#pragma once

#include <string>
#include <vector>

#include "policy/request.h"

namespace sluice::adapter {

/// A copy of a request, which outlives the views of the original. Not copyable: it refers to itself.
class OwnedRequest {
 public:
  explicit OwnedRequest(const Request& request);
  OwnedRequest(const OwnedRequest&) = delete;
  OwnedRequest& operator=(const OwnedRequest&) = delete;
  ~OwnedRequest() = default;

  [[nodiscard]] const Request& get() const { return request_; }

 private:
  std::string texts_;
  std::vector<Entry> entries_;
  std::vector<Descriptor> descriptors_;
  Request request_;
};

}  // namespace sluice::adapter
