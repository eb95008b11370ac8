// The Prometheus text exposition format, version 0.0.4.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::metrics {

/// Appends one metric after the other to a text. Names are the caller's care; label values and help may be any bytes.
class TextFormat {
 public:
  using Label = std::pair<std::string_view, std::string_view>;

  /// Begins a family. `type`: "counter", "gauge" or "histogram".
  void family(std::string_view name, std::string_view type, std::string_view help);
  /// One sample of the family begun last.
  void sample(std::initializer_list<Label> labels, std::uint64_t value);
  void sample(std::initializer_list<Label> labels, double value);

  /// One sample of a histogram: of its family's name with a suffix.
  template <typename Number>
  void sample_of(std::string_view name, std::string_view suffix, std::initializer_list<Label> labels, Number value) {
    const std::string family = std::exchange(name_, std::string(name) + std::string(suffix));
    sample(labels, value);
    name_ = family;
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void begin_sample(std::initializer_list<Label> labels);
  std::string text_;
  std::string name_;
};

/// A label value as it stands between quotes: backslash, quote and line feed escaped; bytes that are not UTF-8 replaced
/// by U+FFFD, as a scraper refuses the whole page for one.
[[nodiscard]] std::string escape_label(std::string_view value);

}  // namespace sluice::metrics
