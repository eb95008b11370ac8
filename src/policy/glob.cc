#include "policy/glob.h"

#include <cstring>

namespace sluice::policy {

Glob::Glob(std::string_view pattern) {
  std::size_t star = pattern.find('*');
  first_ = pattern.substr(0, star);
  if (star == std::string_view::npos) return;
  has_star_ = true;
  for (;;) {
    const std::size_t begin = star + 1;
    star = pattern.find('*', begin);
    if (star == std::string_view::npos) {
      last_ = pattern.substr(begin);
      return;
    }
    if (star > begin) middle_.emplace_back(pattern.substr(begin, star - begin));
  }
}

bool Glob::matches(std::string_view text) const {
  if (!has_star_) return text == first_;
  if (text.size() < first_.size() + last_.size() || !text.starts_with(first_) || !text.ends_with(last_)) return false;
  text.remove_prefix(first_.size());
  text.remove_suffix(last_.size());
  for (const std::string& piece : middle_) {
    // The leftmost place is always as good as any later one. memmem is linear, string_view::find is not.
    const void* found = memmem(text.data(), text.size(), piece.data(), piece.size());
    if (found == nullptr) return false;
    const auto offset = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    text.remove_prefix(offset + piece.size());
  }
  return true;
}

}  // namespace sluice::policy
