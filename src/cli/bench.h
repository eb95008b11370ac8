// sluice bench: load on a daemon or on the library, and what was admitted against what may be.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace sluice::cli {

/// As given on the command line; empty: not given.
struct BenchOptions {
  std::vector<std::string> targets;  ///< grpc://HOST:PORT, http://HOST:PORT, memory, redis://…, unix://…
  std::vector<std::string> policy;   ///< files and directories
  std::string limit;                 ///< what stands between the braces of a rate_limit, in place of a policy
  std::string domain;
  std::vector<std::string> descriptors;  ///< see load::Traffic
  std::string cost;
  std::string rate;  ///< requests a second, or max
  std::string duration;
  std::string connections;  ///< of all targets together
  std::string in_flight;    ///< of a connection
  std::string timeout;      ///< of a check in process on Redis
  std::string seed;
  std::string restarts;
  std::string evictions;
  std::string outage;
  std::string nodes;
  std::string clock_slack;
  bool no_check = false;
  bool json = false;
  bool quiet = false;
};

/// The report on `out`, progress and mistakes on `err`. SIGINT and SIGTERM end the load, and the report is of what was
/// until then. Returns the exit code: 0 done, 1 error, 2 more was admitted than the limits allow.
[[nodiscard]] int bench(const BenchOptions& options, std::ostream& out, std::ostream& err);

}  // namespace sluice::cli
