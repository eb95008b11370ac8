// model_random ALGORITHM|multi OPERATIONS [--public|--keyed]: random operations answered by the algorithms under test
// and by the slow model (slow_model.h); exit code 1 on any difference. A third each on ns, on ns with a clock that
// never steps back, on µs; with --public by the limiters of include/sluice and with --keyed by a key of a Keyed, on ns
// with a clock that never steps back. The seed is SLUICE_SEED (default 1) and is printed.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/model/engine.h"
#include "tests/model/public_subject.h"
#include "tests/model/random_trace.h"
#include "tests/model/slow_model.h"
#include "tests/model/trace.h"

namespace {

using sluice::algorithm::Tick;
using sluice::model::Answer;
using sluice::model::Engine;
using sluice::model::Operation;
using sluice::model::RandomTrace;

void show(const std::vector<std::string>& lines, const Answer& fast, const Answer& slow) {
  for (const std::string& line : lines) std::cout << line << '\n';
  std::cout << "  got   " << boost::json::serialize(to_json(fast)) << "\n  model "
            << boost::json::serialize(to_json(slow)) << '\n';
}

// The operations of the segment so far that lead to a difference are printed as a trace that model_replay can read.
bool compare(RandomTrace& trace, Tick tick, sluice::model::SubjectMaker make, long operations) {
  Engine fast(tick, make);
  Engine slow(tick, &sluice::model::make_slow_subject);
  while (operations > 0) {
    fast.clear();
    slow.clear();
    std::vector<std::string> lines;
    for (const auto& [id, limit] : trace.start_segment()) {
      fast.define(id, limit);
      slow.define(id, limit);
      lines.push_back(sluice::model::limit_line(id, limit, tick));
    }
    std::vector<Operation> done;
    for (int i = 0; i < RandomTrace::kSegment && operations > 0; ++i, --operations) {
      done.push_back(trace.next());
      const Answer want = slow.apply(done.back());
      const Answer got = fast.apply(done.back());
      if (got != want) {
        for (const Operation& operation : done) lines.push_back(sluice::model::operation_line(operation));
        show(lines, got, want);
        return false;
      }
      trace.answered(done.back(), want);
    }
  }
  return true;
}

int run(std::string_view name, long operations, sluice::model::SubjectMaker public_limiters) {
  std::optional<sluice::Algorithm> algorithm;
  if (name != "multi") algorithm = sluice::model::algorithm_named(name);
  const char* chosen = std::getenv("SLUICE_SEED");  // NOLINT(concurrency-mt-unsafe)
  const std::uint64_t seed = chosen != nullptr ? std::stoull(chosen) : 1;
  std::cout << "SLUICE_SEED=" << seed << ' ' << name << ", " << operations << " operations\n";
  if (public_limiters != nullptr) {
    RandomTrace trace(seed, algorithm, Tick::nanosecond, true);
    return compare(trace, Tick::nanosecond, public_limiters, operations) ? 0 : 1;
  }
  const long part = (operations + 2) / 3;
  auto* make = &sluice::model::make_subject;
  RandomTrace ns(seed, algorithm, Tick::nanosecond, false);
  RandomTrace monotone(seed + 1, algorithm, Tick::nanosecond, true);
  RandomTrace us(seed + 2, algorithm, Tick::microsecond, false);
  const bool same = compare(ns, Tick::nanosecond, make, part) && compare(monotone, Tick::nanosecond, make, part) &&
                    compare(us, Tick::microsecond, make, part);
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  sluice::model::SubjectMaker public_limiters = nullptr;
  if (argc == 4 && std::string_view(argv[3]) == "--public") public_limiters = &sluice::model::make_public_subject;
  if (argc == 4 && std::string_view(argv[3]) == "--keyed") public_limiters = &sluice::model::make_keyed_subject;
  if (argc != 3 && public_limiters == nullptr) {
    std::cerr << "usage: model_random ALGORITHM|multi OPERATIONS [--public|--keyed]\n";
    return 2;
  }
  try {
    return run(argv[1], std::stol(argv[2]), public_limiters);
  } catch (const std::exception& error) {
    std::cerr << "model_random: " << error.what() << '\n';
    return 1;
  }
}
