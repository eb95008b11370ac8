// Statistics → the lines that statsd and dogstatsd take.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compat/mogrify.h"
#include "compat/statistics.h"
#include "config/envoy_options.h"

namespace sluice::compat {

/// Remembers what was sent, as counters go as differences. Not thread-safe.
class StatsdText {
 public:
  explicit StatsdText(const config::EnvoyOptions& options);

  /// The lines of what has changed since the last call that was followed by sent(), each with its line feed. The times
  /// of calls are one timer: their mean, at the rate that makes up for their number.
  [[nodiscard]] std::vector<std::string> lines(const Statistics& statistics);
  /// The lines have gone: the next are counted from there.
  void sent();

 private:
  [[nodiscard]] std::string line(const std::string& name, const std::string& value_and_type) const;

  bool is_dogstatsd_;
  std::string name_tags_;  ///< of statsd, a part of the name
  std::string dog_tags_;
  Mogrify mogrify_;
  std::map<std::string, std::uint64_t> sent_;
  Statistics last_;
};

}  // namespace sluice::compat
