// Reads the policy's files, at the start and whenever they change, and puts what is right in force.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "metrics/metrics.h"
#include "policy/policy.h"
#include "policy/reload_state.h"
#include "policy/snapshot_holder.h"
#include "server/file_watch.h"

namespace sluice::server {

/// What a policy is read from, and how.
struct PolicySources {
  std::vector<std::filesystem::path> paths;
  policy::LoadOptions options;
  bool watch = true;  ///< load again when a file has changed, not only when it is asked for
  /// Reads the files, on any thread; empty: policy::read_files(paths).
  std::function<policy::SourceFiles()> read{};  // NOLINT(readability-redundant-member-init): for initializers
};

/// All of the files is put in force or, when anything in them is wrong, nothing. Files are read and policies taken
/// apart on a thread of its own, so that nothing else waits for it. Public functions: the io_context's thread only.
class PolicyKeeper {
 public:
  /// `in_force` is called when another policy is in force.
  PolicyKeeper(boost::asio::io_context& io, PolicySources sources, policy::SnapshotHolder& policies,
               metrics::Registry& registry, metrics::Shard& metrics, std::function<void()> in_force);
  ~PolicyKeeper();
  PolicyKeeper(const PolicyKeeper&) = delete;
  PolicyKeeper& operator=(const PolicyKeeper&) = delete;

  /// Reads the policy for the first time, on this thread. What is wrong, a line each; empty: it is in force.
  [[nodiscard]] std::vector<std::string> load_first();
  /// Begins to watch the files.
  void start();
  /// Reads the files again, even if they are as before.
  void reload() { read_again(true); }
  /// Waits for what is being read, and puts nothing in force any more.
  void stop();

  [[nodiscard]] const policy::ReloadState& state() const { return state_; }

 private:
  struct Attempt {
    std::uint64_t fingerprint = 0;
    std::optional<policy::Loaded> loaded;  ///< nothing: the files are as they were
  };

  [[nodiscard]] policy::SourceFiles read() const;
  void read_again(bool forced);
  void finish(Attempt attempt);
  void put_in_force(policy::Loaded loaded);
  void take_apart();
  void expose(metrics::Registry& registry);

  const PolicySources sources_;
  policy::SnapshotHolder& policies_;
  metrics::Shard& metrics_;
  std::function<void()> in_force_;
  policy::ReloadState state_;
  FileWatch watch_;
  boost::asio::io_context& io_;
  boost::asio::steady_timer retire_timer_;
  boost::asio::thread_pool thread_{1};
  std::uint64_t fingerprint_ = 0;  ///< of what was read last, right or wrong
  /// Out of force, but perhaps still in some thread's use.
  std::vector<std::shared_ptr<const policy::Policy>> retired_;
  std::chrono::seconds retire_after_{1};  ///< longer each time that some thread still has one
  bool reading_ = false;
  bool read_again_ = false;
  bool forced_ = false;
  bool stopped_ = false;
};

}  // namespace sluice::server
