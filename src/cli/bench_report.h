// What sluice bench prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "load/checker.h"
#include "load/generator.h"

namespace sluice::cli {

struct BenchReport {
  std::string target;
  double rate = 0;  ///< planned; 0: as fast as answers came
  const load::Totals* totals = nullptr;
  std::optional<load::CheckReport> check;
  std::string unchecked;           ///< why there is no check
  std::vector<std::string> notes;  ///< what else is to be told, a sentence each
};

[[nodiscard]] std::string to_table(const BenchReport& report);
[[nodiscard]] std::string to_json(const BenchReport& report);
/// One line on how it goes: `asked` of this much more than a second ago.
[[nodiscard]] std::string progress_line(const load::Totals& totals, double seconds, double rate_now);

}  // namespace sluice::cli
