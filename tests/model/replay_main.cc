// model_replay [--us] [--slow|--public|--keyed] < TRACE: replays a trace and compares each answer with the line's
// "want"; exit code 1 on any difference. --slow: by the slow model (slow_model.h); --public: by the limiters of
// include/sluice;
// --keyed: by a key of a Keyed; else by src/algorithm.
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/model/engine.h"
#include "tests/model/public_subject.h"
#include "tests/model/slow_model.h"
#include "tests/model/trace.h"

namespace {

constexpr int kMostShown = 10;

int replay(std::istream& in, sluice::model::Engine engine) {
  std::string line;
  std::size_t number = 0;
  std::size_t compared = 0;
  int wrong = 0;
  while (std::getline(in, line)) {
    ++number;
    const auto operation = sluice::model::parse_operation(line);
    const auto got = to_json(engine.apply(operation));
    if (operation.verb == "limit") continue;
    ++compared;
    if (got == operation.want) continue;
    if (++wrong <= kMostShown) {
      std::cout << "line " << number << ": " << line << "\n  got " << boost::json::serialize(got) << '\n';
    }
  }
  std::cout << compared << " operations compared, " << wrong << " differ\n";
  return compared > 0 && wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  auto tick = sluice::algorithm::Tick::nanosecond;
  auto* make = &sluice::model::make_subject;
  for (const std::string_view argument : std::vector<std::string_view>(argv + 1, argv + argc)) {
    if (argument == "--us") tick = sluice::algorithm::Tick::microsecond;
    if (argument == "--slow") make = &sluice::model::make_slow_subject;
    if (argument == "--public") make = &sluice::model::make_public_subject;
    if (argument == "--keyed") make = &sluice::model::make_keyed_subject;
  }
  try {
    return replay(std::cin, sluice::model::Engine(tick, make));
  } catch (const std::exception& error) {
    std::cerr << "model_replay: " << error.what() << '\n';
    return 1;
  }
}
