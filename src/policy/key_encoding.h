// The values of a descriptor as the text that names its counter.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "policy/request.h"

namespace sluice::policy {

/// Longest key.
inline constexpr std::size_t kMaxKeyBytes = 200;
/// Longest encoded first value, and longest rest (with its separators). What is longer is replaced by its digest.
inline constexpr std::size_t kMaxFirstBytes = 64;
inline constexpr std::size_t kMaxRestBytes = kMaxKeyBytes - kMaxFirstBytes - 1;

/// Writes one key: the parts in order, separated by '|'. No two lists of parts of the same shape give the same key.
/// Bytes other than letters, digits and -._~/:@+,* are percent-encoded, so a key is printable and holds no space, brace
/// or quote; an empty value is a lone '%'. A first part above 64 bytes, and a rest above 135, becomes '#' and 32
/// hexadecimal digits of its SHA-256; '#' in a value is always escaped, so no value can imitate a digest.
/// Cost: a table look-up a byte and a copy; no allocation when `out` has room, but for digests.
class KeyWriter {
 public:
  /// Appends to `out`, which must outlive the writer.
  explicit KeyWriter(std::string& out) : out_(out), begin_(out.size()) {}
  void add_value(std::string_view value);
  /// A part that holds a key too, for levels whose key is not fixed.
  void add_pair(std::string_view key, std::string_view value);
  /// To be called once, after the last part.
  void finish();

 private:
  void begin_part();

  std::string& out_;
  std::size_t begin_;
  std::size_t first_end_ = std::string::npos;  ///< where the separator after the first part stands
  bool any_ = false;
};

/// The key of entries whose keys are all fixed by the policy: their values.
void append_key(std::span<const Entry> entries, std::string& out);

}  // namespace sluice::policy
