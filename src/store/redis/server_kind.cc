#include "store/redis/server_kind.h"

#include "store/redis/advice.h"
#include "store/redis/error_kinds.h"

namespace sluice::store::redis {

// Names and values in turn.
std::string_view objection_to(const redisReply& hello) {
  if (hello.type != REDIS_REPLY_ARRAY) return {};
  std::string_view mode;
  std::string_view role;
  for (std::size_t i = 0; i + 1 < hello.elements; i += 2) {
    if (hello.element[i]->type != REDIS_REPLY_STRING || hello.element[i + 1]->type != REDIS_REPLY_STRING) continue;
    if (text_of(*hello.element[i]) == "mode") mode = text_of(*hello.element[i + 1]);
    if (text_of(*hello.element[i]) == "role") role = text_of(*hello.element[i + 1]);
  }
  if (mode == "sentinel") return kIsSentinel;
  if (mode == "cluster") return kIsClusterNode;
  if (role == "replica" || role == "slave") return kNotMaster;
  return {};
}

bool may_do_without_hello(std::string_view error) {
  const Failure failure = classify_error(error);
  return failure == Failure::no_permission ||
         (failure == Failure::server_error && !error.starts_with("ERR max number of clients"));
}

}  // namespace sluice::store::redis
