#include "policy/runtime_files.h"

#include <algorithm>
#include <system_error>

#include "base/read_file.h"
#include "yaml/tree.h"

namespace sluice::policy {
namespace {

namespace fs = std::filesystem;

class Reading {
 public:
  explicit Reading(const RuntimeFiles& where) : where_(where), folder_(where.folder()) {}

  SourceFiles run() && {
    std::vector<fs::path> files;
    list(folder_, files);
    std::ranges::sort(files);
    for (const fs::path& file : files) read(file);
    return std::move(result_);
  }

 private:
  void list(const fs::path& folder, std::vector<fs::path>& files) {
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      const fs::path& path = it->path();
      if (!where_.with_dot_files && path.filename().string().starts_with('.')) continue;
      std::error_code ignored;
      const bool is_link = fs::is_symlink(fs::symlink_status(path, ignored));
      const fs::file_status status = fs::status(path, ignored);
      if (fs::is_directory(status)) {
        if (!is_link) {
          list(path, files);
        } else if (!path.filename().string().starts_with('.') && is_wanted(path / "file")) {
          // But those of a Kubernetes volume: it always has one, ..data, whose files are read by their links.
          warn(path, "passed over: it is a link to a directory, which is not followed");
        }
      } else if (is_wanted(path)) {
        if (const auto refusal = refusal_of_irregular(path.string())) {
          warn(path, "passed over: " + refusal->message);
        } else {
          files.push_back(path);
        }
      }
    }
    const bool is_absent = error == std::errc::no_such_file_or_directory && folder == folder_;
    if (error && !is_absent) complain(folder, "cannot be read: " + error.message());
  }

  [[nodiscard]] bool is_wanted(const fs::path& path) const {
    if (!where_.watches_root || where_.app_directory.empty()) return true;
    std::string key = path.lexically_relative(folder_).string();
    std::ranges::replace(key, '/', '.');
    return key.starts_with(where_.app_directory + ".");
  }

  void read(const fs::path& path) {
    auto text = read_regular_file(path.string(), yaml::Tree::kMaxBytes + 1);
    if (!text) {
      complain(path, "cannot be read: " + text.error().message);
    } else if (text->size() > yaml::Tree::kMaxBytes) {
      complain(path, "the file is longer than " + std::to_string(yaml::Tree::kMaxBytes) + " bytes");
    } else {
      result_.texts.push_back({path.string(), *std::move(text)});
    }
  }

  void complain(const fs::path& path, std::string message) {
    result_.findings.push_back({Finding::Severity::error, path.string(), 0, 0, std::move(message)});
  }

  void warn(const fs::path& path, std::string message) {
    result_.findings.push_back({Finding::Severity::warning, path.string(), 0, 0, std::move(message)});
  }

  const RuntimeFiles& where_;
  fs::path folder_;
  SourceFiles result_;
};

/// `name` in `folder`, whatever it begins with: a slash at its front means nothing, and `..` goes by the text alone, as
/// where envoyproxy/ratelimit runs. An empty one is `folder`.
fs::path below(const fs::path& folder, const fs::path& name) {
  if (folder.empty() || name.empty()) return folder.empty() ? name : folder;
  const fs::path joined = fs::path(folder.string() + "/" + name.string()).lexically_normal();
  return joined.has_filename() ? joined : joined.parent_path();
}

}  // namespace

fs::path RuntimeFiles::folder() const {
  const fs::path above = below(root, subdirectory);
  return watches_root ? above : below(above, app_directory);
}

std::vector<fs::path> RuntimeFiles::watched() const {
  std::vector<fs::path> paths{folder()};
  if (watches_root) paths.push_back(below(folder(), app_directory));
  return paths;
}

SourceFiles read_runtime_files(const RuntimeFiles& where) { return Reading(where).run(); }

}  // namespace sluice::policy
