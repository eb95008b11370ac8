// redis_model_replay [--us] [--literal]: replays traces of the reference model (standard input, times in µs) through
// the script on a redis-server of its own, in its fast or its literal style, and compares each answer with the line's
// "want". Exit code 1 on any difference.
#include <iostream>
#include <string>
#include <string_view>

#include "tests/integration/redis_engine.h"
#include "tests/integration/redis_server.h"
#include "tests/model/trace.h"

int main(int argc, char** argv) try {
  constexpr int most_shown = 10;
  sluice::testing::RedisServer server;
  auto style = sluice::store::redis::ScriptStyle::fast;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--literal") style = sluice::store::redis::ScriptStyle::literal;
  }
  sluice::testing::RedisEngine engine(server, style);
  std::string line;
  std::size_t number = 0;
  std::size_t compared = 0;
  int wrong = 0;
  while (std::getline(std::cin, line)) {
    ++number;
    const auto operation = sluice::model::parse_operation(line);
    boost::json::object got;
    try {
      got = engine.apply(operation);
    } catch (const std::exception& error) {
      got["failed"] = error.what();
    }
    if (operation.verb == "limit") continue;
    ++compared;
    if (got == operation.want) continue;
    if (++wrong <= most_shown) {
      std::cout << "line " << number << ": " << line << "\n  got " << boost::json::serialize(got) << '\n';
    }
  }
  std::cout << compared << " operations compared, " << wrong << " differ\n";
  return compared > 0 && wrong == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "redis_model_replay: " << error.what() << '\n';
  return 1;
}
