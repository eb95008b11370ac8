#include "tests/integration/redis_engine.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "store/redis/check_call.h"
#include "store/redis/redis_limit.h"
#include "store/redis/resp_writer.h"

namespace sluice::testing {

namespace {

using store::redis::RedisLimit;
using store::redis::text_of;

constexpr std::int64_t kTrustedLead = std::int64_t{1} << 53;

}  // namespace

RedisEngine::RedisEngine(RedisServer& server, store::redis::ScriptStyle style)
    : StoreEngine(algorithm::Tick::microsecond),
      server_(server),
      script_(store::redis::make_check_script(kTracedClock, style)) {
  server_.command({"FLUSHALL"});
  server_.command({"SCRIPT", "LOAD", script_.text});
}

void RedisEngine::ask(store::Check& check, std::int64_t now) {
  latest_ = std::max(latest_, now);
  std::vector<std::shared_ptr<const RedisLimit>> limits;
  for (const store::Charge& charge : check.charges) {
    auto known = std::ranges::find(compiled_, charge.limit->numbers, [](const auto& one) { return one->numbers(); });
    if (known == compiled_.end()) {
      auto compiled = RedisLimit::compile(charge.limit->numbers);
      if (!compiled) throw std::invalid_argument(compiled.error().message);
      known = compiled_.insert(known, *std::move(compiled));
    }
    limits.push_back(*known);
  }
  store::redis::Batch batch;
  if (!batch.add(check, limits, "sluice:", Time{.steady = 0, .utc = latest_ * 1'000}, 0)) {
    throw std::logic_error("a batch takes its first request");
  }
  batch.prepare();
  std::string command;
  store::redis::append_command(command, 2 + store::redis::words_of_call(batch) + 1);
  store::redis::append_bulk(command, "EVALSHA");
  store::redis::append_bulk(command, script_.sha1);
  store::redis::append_call(command, batch);
  store::redis::append_bulk(command, std::to_string(now));
  const auto reply = server_.raw_command(command);
  const store::Failure failure = store::redis::AnswerReader(kTrustedLead).read(*reply, batch);
  if (failure != store::Failure::none || batch.requests()[0].failure != store::Failure::none) {
    throw std::runtime_error(std::string(to_text(failure)) + ": " +
                             (reply->type == REDIS_REPLY_ERROR ? std::string(text_of(*reply)) : ""));
  }
}

}  // namespace sluice::testing
