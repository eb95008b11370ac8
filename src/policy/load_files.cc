// Files and directories → texts.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "policy/policy.h"
#include "yaml/tree.h"

namespace sluice::policy {
namespace {

namespace fs = std::filesystem;

class FileList {
 public:
  void add(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) {
      complain(path, "no such file or directory");
    } else if (status.type() == fs::file_type::none) {
      complain(path, fmt::format("cannot be read: {}", error.message()));
    } else if (fs::is_directory(status)) {
      add_directory(path);
    } else {
      read(path);
    }
  }

  std::vector<SourceText> texts;
  std::vector<Finding> findings;

 private:
  void add_directory(const fs::path& directory) {
    std::error_code error;
    std::vector<fs::path> files;
    for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
      if (!it->path().filename().string().starts_with('.') && !is_something_else(it->path())) {
        files.push_back(it->path());
      }
    }
    if (error) {
      complain(directory, fmt::format("cannot be read: {}", error.message()));
      return;
    }
    if (files.empty()) complain(directory, "expected policy files in this directory, found none");
    std::ranges::sort(files);
    for (const fs::path& file : files) add_file(file);
  }

  /// A directory, a pipe …: there is something, and it is no policy file.
  static bool is_something_else(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    return fs::exists(status) && fs::status_known(status) && !fs::is_regular_file(status);
  }

  /// An entry of a directory. One that leads nowhere is told: a policy without it would limit less than it should.
  void add_file(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_regular_file(status)) {
      read(path);
    } else if (status.type() == fs::file_type::not_found) {
      complain(path, "cannot be read: it points to a file that does not exist");
    } else {
      complain(path, fmt::format("cannot be read: {}", error.message()));
    }
  }

  /// Never more than is allowed and a chunk are kept.
  void read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::string text;
    std::vector<char> chunk(64U << 10U);
    while (in && text.size() <= yaml::Tree::kMaxBytes) {
      in.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
      text.append(chunk.data(), static_cast<std::size_t>(in.gcount()));
    }
    if (!in.is_open() || in.bad()) {
      complain(path, fmt::format("cannot be read: {}", std::generic_category().message(errno)));
      return;
    }
    if (text.size() > yaml::Tree::kMaxBytes) {
      std::error_code unknown;
      const std::uintmax_t size = fs::file_size(path, unknown);
      complain(path,
               unknown ? fmt::format("the file is longer than {} bytes, which are read at most", yaml::Tree::kMaxBytes)
                       : fmt::format("the file is {} bytes long; at most {} are read", size, yaml::Tree::kMaxBytes));
      return;
    }
    texts.push_back({path.string(), std::move(text)});
  }

  void complain(const fs::path& path, std::string message) {
    findings.push_back({Finding::Severity::error, path.string(), 0, 0, std::move(message)});
  }
};

}  // namespace

Loaded load(std::span<const fs::path> paths, const LoadOptions& options) {
  FileList files;
  for (const fs::path& path : paths) files.add(path);
  Loaded loaded = load_texts(files.texts, options);
  if (!files.findings.empty()) {
    loaded.policy.reset();
    loaded.findings.insert(loaded.findings.begin(), files.findings.begin(), files.findings.end());
  }
  return loaded;
}

}  // namespace sluice::policy
