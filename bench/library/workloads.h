// What sluice_bench can be told to do. bench/library/governor has the same names for the same work.
#pragma once

#include <string>
#include <vector>

#include "measure.h"

namespace sluice::bench {

struct Workload {
  std::string name;
  Result (*run)(const Amount& amount);
};

/// One limiter, one key: with its clock, given the time, by several threads.
std::vector<Workload> direct_workloads();
/// 100 000 keys and 10 000 000.
std::vector<Workload> keyed_workloads();
/// Two threads on one keyed limiter of 100 000 … 10 000 000 keys, or on two, and the same of bare memory.
std::vector<Workload> shared_workloads();
/// Every algorithm, allowed and denied, for counting instructions.
std::vector<Workload> algorithm_workloads();

/// A keyed limiter that grows to `keys` keys: the worst call and the memory on the way. Prints one JSON object.
void grow(std::uint64_t keys);

}  // namespace sluice::bench
