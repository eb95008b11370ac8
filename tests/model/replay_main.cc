// model_replay [--us] [FILE]: replays a trace and compares each answer with the line's "want". Exit code 1 on any
// difference.
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/model/engine.h"
#include "tests/model/trace.h"

namespace {

constexpr int kMostShown = 10;

int replay(std::istream& in, sluice::algorithm::Tick tick) {
  sluice::model::Engine engine(tick);
  std::string line;
  std::size_t number = 0;
  std::size_t compared = 0;
  int wrong = 0;
  while (std::getline(in, line)) {
    ++number;
    const auto operation = sluice::model::parse_operation(line);
    const auto got = engine.apply(operation);
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
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  auto tick = sluice::algorithm::Tick::nanosecond;
  std::ifstream file;
  for (const std::string_view argument : arguments) {
    if (argument == "--us") {
      tick = sluice::algorithm::Tick::microsecond;
    } else {
      file.open(std::string(argument));
      if (!file) {
        std::cerr << "model_replay: cannot read " << argument << '\n';
        return 1;
      }
    }
  }
  try {
    return replay(file.is_open() ? file : std::cin, tick);
  } catch (const std::exception& error) {
    std::cerr << "model_replay: " << error.what() << '\n';
    return 1;
  }
}
