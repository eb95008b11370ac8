// All of a request's head, for the paths that decide about the request of somebody else by it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/http_request.h"

namespace sluice::http {

/// A copy of the request line and the fields, in storage that is used again. Not thread-safe.
class KeptHead {
 public:
  void clear();
  void set_request(std::string_view method, std::string_view target);
  void add_field(std::string_view name, std::string_view value);

  [[nodiscard]] std::string_view method() const { return std::string_view(text_).substr(0, method_end_); }
  /// With its query.
  [[nodiscard]] std::string_view target() const {
    return std::string_view(text_).substr(method_end_, target_end_ - method_end_);
  }
  /// In their order; valid until the next change.
  [[nodiscard]] std::span<const HeaderField> fields();

 private:
  struct Part {
    std::size_t begin = 0;
    std::size_t name_end = 0;
    std::size_t end = 0;
  };
  std::string text_;
  std::size_t method_end_ = 0;
  std::size_t target_end_ = 0;
  std::vector<Part> parts_;
  std::vector<HeaderField> fields_;
};

}  // namespace sluice::http
