// What a server says that it is, where the URL names one server.
#pragma once

#include <string_view>

#include "store/redis/reply_reader.h"

namespace sluice::store::redis {

/// Why a server that answers HELLO so is not one master that works alone, and what to write in the URL; empty: it is,
/// or it does not tell. Precondition: no error.
[[nodiscard]] std::string_view objection_to(const redisReply& hello);
/// May a server that answers HELLO by this error be used without it? Redis 5 does not know it, and users may lack it.
[[nodiscard]] bool may_do_without_hello(std::string_view error);

}  // namespace sluice::store::redis
