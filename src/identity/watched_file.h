// A file whose contents are read again when it changes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/result.h"

namespace sluice::identity {

/// What tells a file's state from another without reading it.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified = 0;  ///< ns
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

inline constexpr std::size_t kMaxWatchedBytes = std::size_t{4} * 1024 * 1024;

/// The whole of a regular file of at most kMaxWatchedBytes. Errors name no path.
[[nodiscard]] Result<std::string> read_file(const std::string& path, FileStamp& stamp);
/// Its state now; all zeros when it is not there.
[[nodiscard]] FileStamp stamp_of(const std::string& path);

/// A T parsed from a file. Thread-safe. Somebody looks at the file by look_now() once a second, or whoever asks does by
/// look(), at most as often, and it is read again when it is another: also through a link that was pointed elsewhere.
/// What cannot be read leaves the old contents in force and is logged, once for each state of the file. A state that
/// nobody looks at is never in force, so where revoking must hold, look_now() is called by time, not by requests.
template <typename T>
class WatchedFile {
 public:
  using Parse = std::function<Result<std::shared_ptr<const T>>(std::string_view text)>;

  /// Reads the file for the first time. The error names the path.
  [[nodiscard]] static Result<std::shared_ptr<WatchedFile>> open(std::string path, Parse parse) {
    std::shared_ptr<WatchedFile> file(new WatchedFile(std::move(path), std::move(parse)));
    Result<std::shared_ptr<const T>> contents = file->read();
    if (!contents) return contents.error();
    file->contents_ = *std::move(contents);
    return file;
  }

  /// `steady` is the time now. Cost: a comparison but once a second.
  void look(std::int64_t steady) {
    std::int64_t next = next_look_.load(std::memory_order_relaxed);
    if (steady < next || !next_look_.compare_exchange_strong(next, steady + kInterval, std::memory_order_relaxed)) {
      return;
    }
    look();
  }
  /// The same whenever it is called, and keeps look() from it for a second.
  void look_now(std::int64_t steady) {
    next_look_.store(steady + kInterval, std::memory_order_relaxed);
    look();
  }
  [[nodiscard]] std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  [[nodiscard]] std::shared_ptr<const T> get() const {
    const std::scoped_lock lock(mutex_);
    return contents_;
  }

 private:
  static constexpr std::int64_t kInterval = 1'000'000'000;

  WatchedFile(std::string path, Parse parse) : path_(std::move(path)), parse_(std::move(parse)) {}

  void look() {
    const std::scoped_lock looking(reading_);
    if (stamp_of(path_) == stamp_) return;
    Result<std::shared_ptr<const T>> contents = read();
    if (!contents) {
      log::error("a file has changed and cannot be read; what it held before stays in force",
                 {{"reason", contents.error().message}});
      return;
    }
    log::info("a file has changed and was read again", {{"file", path_}});
    const std::scoped_lock lock(mutex_);
    contents_ = *std::move(contents);
    generation_.fetch_add(1, std::memory_order_release);
  }

  /// Takes note of the state read, whatever comes of it.
  Result<std::shared_ptr<const T>> read() {
    const Result<std::string> text = read_file(path_, stamp_);
    if (!text) return Error{path_ + ": " + text.error().message};
    Result<std::shared_ptr<const T>> contents = parse_(*text);
    if (!contents) return Error{path_ + ": " + contents.error().message};
    return contents;
  }

  const std::string path_;
  const Parse parse_;
  std::mutex reading_;
  FileStamp stamp_;  ///< what was read last
  std::atomic<std::int64_t> next_look_{INT64_MIN};
  mutable std::mutex mutex_;
  std::shared_ptr<const T> contents_;
  std::atomic<std::uint64_t> generation_{1};
};

}  // namespace sluice::identity
