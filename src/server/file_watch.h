// Tells when files, directories, or the links on the way to them change.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::server {

/// Watches, by inotify, each path and what is in it when it is a directory, and every link and folder on the way there,
/// so that a file that is renamed into place, a link that is turned to another folder (as Kubernetes does with
/// `..data`) and a folder that is replaced are noticed, too. Where inotify cannot tell, on a network's file system, it
/// looks every second.
///
/// Changes that come together are told once, when nothing has happened for a moment and no file is being written, but
/// not later than kMostDelay after the first. One thread only, that of the io_context.
class FileWatch {
 public:
  static constexpr std::chrono::milliseconds kQuiet{50};
  static constexpr std::chrono::milliseconds kMostDelay{500};

  /// `changed` may call refresh(), and is called when something may have changed: it judges by content.
  FileWatch(boost::asio::io_context& io, std::vector<std::filesystem::path> paths, std::function<void()> changed);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  void start();
  void stop();
  /// Follows the paths anew, as they may lead elsewhere now. To be called before the files are read, so that no change
  /// is missed in between.
  void refresh();

 private:
  /// What of a directory is of interest.
  struct Interest {
    bool all = false;  ///< all names that do not begin with a dot
    std::set<std::string, std::less<>> names;
  };
  using Wanted = std::map<std::string, Interest, std::less<>>;

  void follow(const std::filesystem::path& path, Wanted& wanted) const;
  void follow_all(const std::filesystem::path& directory, Wanted& wanted) const;
  void watch(const Wanted& wanted);
  void read_soon();
  void read_events(std::string_view bytes);
  void note(int watch, std::uint32_t mask, std::string_view name);
  void settle();
  void poll_soon();

  boost::asio::posix::stream_descriptor events_;
  boost::asio::steady_timer settle_timer_;
  boost::asio::steady_timer poll_timer_;
  std::vector<std::filesystem::path> paths_;
  std::function<void()> changed_;
  std::vector<char> buffer_;
  std::map<int, Interest> watches_;
  /// Files that somebody writes to, by the watch of their directory.
  std::set<std::pair<int, std::string>> written_;
  std::chrono::steady_clock::time_point first_change_;
  bool settling_ = false;
  bool polls_ = false;
};

}  // namespace sluice::server
