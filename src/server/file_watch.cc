#include "server/file_watch.h"

#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <system_error>

#include "base/log.h"

namespace sluice::server {
namespace {

namespace fs = std::filesystem;
using boost::system::error_code;

constexpr std::uint32_t kDirectoryMask = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO |
                                         IN_DELETE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;
// The file itself, which may have other names, or lie under another file system.
constexpr std::uint32_t kFileMask = IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;
constexpr std::size_t kBuffer = std::size_t{16} * 1024;
constexpr std::chrono::seconds kPollInterval{1};
constexpr int kMostLinks = 40;  // as the kernel follows

/// May others change files there without this kernel's knowledge?
bool is_remote(const fs::path& path) {
  constexpr std::array<std::uint32_t, 7> remote{
      NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, 0xFF534D42U /* cifs */, 0xFE534D42U /* smb2 */, 0x65735546U /* fuse */,
      V9FS_MAGIC,      0x00C36400U /* ceph */};
  struct statfs where{};
  return ::statfs(path.c_str(), &where) == 0 &&
         std::ranges::find(remote, static_cast<std::uint32_t>(where.f_type)) != remote.end();
}

}  // namespace

FileWatch::FileWatch(boost::asio::io_context& io, std::vector<fs::path> paths, std::function<void()> changed)
    : events_(io),
      settle_timer_(io),
      poll_timer_(io),
      paths_(std::move(paths)),
      changed_(std::move(changed)),
      buffer_(kBuffer) {}

FileWatch::~FileWatch() = default;

void FileWatch::start() {
  const int descriptor = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (descriptor < 0) {
    polls_ = true;
    log::warn("files cannot be watched, so they are read every second",
              {{"what", std::generic_category().message(errno)}});
  } else {
    events_.assign(descriptor);
    read_soon();
  }
  refresh();
  polls_ = polls_ || std::ranges::any_of(paths_, is_remote);
  if (polls_) poll_soon();
}

void FileWatch::stop() {
  error_code ignored;
  events_.close(ignored);
  settle_timer_.cancel();
  poll_timer_.cancel();
}

void FileWatch::refresh() {
  if (!events_.is_open()) return;
  Wanted wanted;
  for (const fs::path& path : paths_) {
    std::error_code error;
    const fs::path whole = fs::absolute(path, error);
    if (error) continue;
    follow(whole, wanted);
    if (fs::is_directory(whole, error)) follow_all(whole, wanted);
  }
  watch(wanted);
}

/// Every folder on the way is of interest for the one name in it that leads on; so is what is at the end.
void FileWatch::follow(const fs::path& path, Wanted& wanted) const {
  std::deque<fs::path> rest(path.begin(), path.end());
  fs::path at;
  int links = 0;
  while (!rest.empty()) {
    const fs::path next = rest.front();
    rest.pop_front();
    if (next.empty() || next == ".") continue;
    if (next.is_absolute()) {
      at = next;
      continue;
    }
    if (next == "..") {
      at = at.parent_path();
      continue;
    }
    wanted[at.string()].names.insert(next.string());
    const fs::path here = at / next;
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(here, error))) {
      at = here;
      continue;
    }
    if (++links > kMostLinks) return;
    const fs::path target = fs::read_symlink(here, error);
    if (error) return;
    rest.insert(rest.begin(), target.begin(), target.end());
  }
  wanted[at.string()];
}

void FileWatch::follow_all(const fs::path& directory, Wanted& wanted) const {
  std::error_code error;
  wanted[fs::canonical(directory, error).string()].all = true;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (!it->path().filename().string().starts_with('.')) follow(it->path(), wanted);
  }
}

void FileWatch::watch(const Wanted& wanted) {
  std::map<int, Interest> now;
  for (const auto& [path, interest] : wanted) {
    struct stat status{};
    if (path.empty() || ::stat(path.c_str(), &status) != 0) continue;  // what is above tells when it comes
    const std::uint32_t mask = S_ISDIR(status.st_mode) ? kDirectoryMask : kFileMask;
    const int watch = ::inotify_add_watch(events_.native_handle(), path.c_str(), mask);
    if (watch < 0) {
      // Folders further up may be closed to us; they rarely change.
      if (errno != EACCES && errno != ENOENT && !std::exchange(polls_, true)) {
        log::warn("files cannot be watched, so they are read every second",
                  {{"what", std::generic_category().message(errno)}, {"path", path}});
        poll_soon();
      }
      continue;
    }
    Interest& known = now[watch];
    known.all = known.all || interest.all;
    known.names.insert(interest.names.begin(), interest.names.end());
  }
  for (const auto& [watch, interest] : watches_) {
    if (!now.contains(watch)) ::inotify_rm_watch(events_.native_handle(), watch);
  }
  watches_ = std::move(now);
}

void FileWatch::read_soon() {
  events_.async_read_some(boost::asio::buffer(buffer_), [this](const error_code& error, std::size_t size) {
    if (error) return;
    read_events({buffer_.data(), size});
    read_soon();
  });
}

void FileWatch::read_events(std::string_view bytes) {
  inotify_event event{};
  while (bytes.size() >= sizeof(event)) {
    std::memcpy(&event, bytes.data(), sizeof(event));
    bytes.remove_prefix(sizeof(event));
    const std::string_view padded = bytes.substr(0, event.len);
    bytes.remove_prefix(padded.size());
    note(event.wd, event.mask, padded.substr(0, padded.find('\0')));
  }
}

void FileWatch::note(int watch, std::uint32_t mask, std::string_view name) {
  const bool lost_some = (mask & IN_Q_OVERFLOW) != 0;
  const auto found = watches_.find(watch);
  if (!lost_some) {
    if (found == watches_.end() || (mask & IN_IGNORED) != 0) return;
    const Interest& interest = found->second;
    const bool matters = name.empty() || interest.names.contains(name) || (interest.all && !name.starts_with('.'));
    if (!matters) return;
    if (!name.empty()) {
      std::pair<int, std::string> file(watch, name);
      if ((mask & IN_MODIFY) != 0) {
        written_.insert(std::move(file));
      } else if ((mask & (IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE)) != 0) {
        written_.erase(file);
      }
    }
  }
  if (!std::exchange(settling_, true)) first_change_ = std::chrono::steady_clock::now();
  settle();
}

void FileWatch::settle() {
  const auto now = std::chrono::steady_clock::now();
  const auto latest = first_change_ + kMostDelay;
  settle_timer_.expires_at(std::min(written_.empty() ? now + kQuiet : latest, latest));
  settle_timer_.async_wait([this](const error_code& cancelled) {
    if (cancelled || !settling_) return;
    settling_ = false;
    written_.clear();
    changed_();
  });
}

void FileWatch::poll_soon() {
  poll_timer_.expires_after(kPollInterval);
  poll_timer_.async_wait([this](const error_code& cancelled) {
    if (cancelled) return;
    changed_();
    poll_soon();
  });
}

}  // namespace sluice::server
