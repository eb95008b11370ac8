// The workloads that the library is measured with, on Sluice. bench/library/governor is the same on its peer.
//
//   sluice_bench list               names of the workloads
//   sluice_bench WORKLOAD AMOUNT    runs one: AMOUNT is calls (each thread), or a time such as 200ms
//   sluice_bench                    the same, a workload a line, from standard input: tables stay from line to line
//   sluice_bench grow KEYS          a keyed limiter from nothing to KEYS keys
//
// Every run answers with one JSON object on a line. bench/run library runs all that and compares.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "workloads.h"

namespace {

using sluice::bench::Amount;
using sluice::bench::Result;
using sluice::bench::Workload;

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0) return std::nullopt;
  return value;
}

std::optional<Amount> amount(std::string_view text) {
  if (text.ends_with("ms")) {
    const auto milliseconds = number(text.substr(0, text.size() - 2));
    if (!milliseconds) return std::nullopt;
    return Amount{.nanoseconds = static_cast<double>(*milliseconds) * 1e6};
  }
  const auto calls = number(text);
  if (!calls) return std::nullopt;
  return Amount{.calls = *calls};
}

bool run(const std::vector<Workload>& workloads, std::string_view name, std::string_view how_long) {
  const auto found = std::ranges::find(workloads, name, &Workload::name);
  const auto asked = amount(how_long);
  if (found == workloads.end() || !asked) {
    std::fprintf(stderr, "no such workload, or no such amount: %s %s\n", std::string(name).c_str(),
                 std::string(how_long).c_str());
    return false;
  }
  const Result result = found->run(*asked);
  std::printf(R"({"name": "%s", "ns": %.4f, "calls": %llu, "allowed": %llu})"
              "\n",
              found->name.c_str(), result.nanoseconds, static_cast<unsigned long long>(result.calls),
              static_cast<unsigned long long>(result.allowed));
  std::fflush(stdout);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Workload> workloads = sluice::bench::direct_workloads();
  std::ranges::copy(sluice::bench::keyed_workloads(), std::back_inserter(workloads));
  std::ranges::copy(sluice::bench::shared_workloads(), std::back_inserter(workloads));
  std::ranges::copy(sluice::bench::algorithm_workloads(), std::back_inserter(workloads));
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    for (std::string line; std::getline(std::cin, line);) {
      const std::size_t space = line.find(' ');
      if (space == std::string::npos || !run(workloads, line.substr(0, space), line.substr(space + 1))) return 2;
    }
    return 0;
  }
  if (arguments.size() == 1 && arguments[0] == "list") {
    for (const Workload& workload : workloads) std::puts(workload.name.c_str());
    return 0;
  }
  if (arguments.size() == 2 && arguments[0] == "grow" && number(arguments[1])) {
    sluice::bench::grow(*number(arguments[1]));
    return 0;
  }
  if (arguments.size() == 2) return run(workloads, arguments[0], arguments[1]) ? 0 : 2;
  std::fputs("usage: sluice_bench [list | grow KEYS | WORKLOAD CALLS|MSms]\n", stderr);
  return 2;
}
