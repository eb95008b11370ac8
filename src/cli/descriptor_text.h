// Descriptors and domains as the command line has them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "policy/policy.h"
#include "policy/request.h"

namespace sluice::cli {

/// Descriptors that own their texts.
class DescriptorTexts {
 public:
  /// Each is one descriptor: its entries as "key=value", separated by commas. A comma or backslash that belongs to a
  /// key or value has a backslash before it.
  [[nodiscard]] static Result<DescriptorTexts> parse(std::span<const std::string> texts);
  /// Valid while this lives and stays in place.
  [[nodiscard]] std::span<const Descriptor> descriptors() const { return descriptors_; }

  DescriptorTexts(DescriptorTexts&&) = default;
  DescriptorTexts& operator=(DescriptorTexts&&) = default;
  DescriptorTexts(const DescriptorTexts&) = delete;
  DescriptorTexts& operator=(const DescriptorTexts&) = delete;
  ~DescriptorTexts() = default;

 private:
  DescriptorTexts() = default;
  struct OwnEntry {
    std::string key;
    std::string value;
  };
  [[nodiscard]] static Result<std::vector<OwnEntry>> parse_one(const std::string& text);

  std::vector<std::vector<OwnEntry>> owned_;
  std::vector<std::vector<Entry>> entries_;
  std::vector<Descriptor> descriptors_;
};

/// The domain asked, or the policy's only one; else an empty text, and the reason in `problem`.
[[nodiscard]] std::string pick_domain(const std::string& asked, const policy::Policy& policy, std::string& problem);

}  // namespace sluice::cli
