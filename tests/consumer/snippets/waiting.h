// What the statements in docs/waiting.md take for given.
#include "prelude.h"

#include <boost/asio/io_context.hpp>
#include <optional>
#include <stop_token>
#include <thread>

#include <sluice/asio/async_wait.h>

struct Job {};
struct Jobs {
  std::optional<Job> pop();
};
void run(const Job& job);
void send_one();
extern const std::string user;
extern boost::asio::io_context io;
extern sluice::TokenBucket bucket;
