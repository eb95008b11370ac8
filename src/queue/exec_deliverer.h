// Delivers by running a command.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <string>

#include "queue/deliverer.h"

namespace sluice::queue {

/// `/bin/sh -c command` for each delivery: the body on standard input, and SLUICE_TICKET, _KEY, _METHOD, _PATH,
/// _BODY_REFERENCE, _ATTEMPT and _MAY_BE_DUPLICATE in the environment. Exit code 0: delivered; 100: refused for ever;
/// 126 and 127, by which the shell says that there is no such command or that it cannot be run, and no process to be
/// had: hindered; any other, or no end within `timeout` (then it is killed, with its process group): tried again.
class ExecDeliverer final : public Deliverer {
 public:
  ExecDeliverer(boost::asio::io_context& io, std::string command, std::chrono::nanoseconds timeout);
  void start(const Attempt& attempt, Done done) override;

 private:
  boost::asio::io_context& io_;
  const std::string command_;
  const std::chrono::nanoseconds timeout_;
};

}  // namespace sluice::queue
