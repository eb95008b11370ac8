// Files and directories → texts.
#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/read_file.h"
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

  [[nodiscard]] SourceFiles take() { return std::move(read_); }

 private:
  void add_directory(const fs::path& directory) {
    std::error_code error;
    std::error_code ignored;
    std::vector<fs::path> files;
    for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
      if (it->path().filename().string().starts_with('.')) continue;
      const fs::file_status status = it->status(ignored);
      if (fs::is_directory(status)) continue;
      if (const auto refusal = refusal_of_irregular(it->path().string())) {
        read_.findings.push_back(
            {Finding::Severity::warning, it->path().string(), 0, 0, "passed over: " + refusal->message});
      } else {
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

  void read(const fs::path& path) {
    auto text = read_regular_file(path.string(), yaml::Tree::kMaxBytes + 1);
    if (!text) {
      complain(path, fmt::format("cannot be read: {}", text.error().message));
      return;
    }
    if (text->size() > yaml::Tree::kMaxBytes) {
      std::error_code unknown;
      const std::uintmax_t size = fs::file_size(path, unknown);
      complain(path,
               unknown ? fmt::format("the file is longer than {} bytes, which are read at most", yaml::Tree::kMaxBytes)
                       : fmt::format("the file is {} bytes long; at most {} are read", size, yaml::Tree::kMaxBytes));
      return;
    }
    read_.texts.push_back({path.string(), *std::move(text)});
  }

  void complain(const fs::path& path, std::string message) {
    read_.findings.push_back({Finding::Severity::error, path.string(), 0, 0, std::move(message)});
  }

  SourceFiles read_;
};

}  // namespace

std::uint64_t SourceFiles::fingerprint() const {
  std::uint64_t hash = texts.size();
  const auto add = [&hash](std::string_view text) { hash = XXH3_64bits_withSeed(text.data(), text.size(), hash); };
  for (const SourceText& text : texts) {
    add(text.name);
    add(text.text);
  }
  for (const Finding& finding : findings) add(finding.to_string());
  return hash;
}

SourceFiles read_files(std::span<const fs::path> paths) {
  FileList files;
  for (const fs::path& path : paths) files.add(path);
  return files.take();
}

Loaded load(const SourceFiles& files, const LoadOptions& options) {
  Loaded loaded = load_texts(files.texts, options);
  if (!files.findings.empty()) {
    if (std::ranges::any_of(files.findings, &Finding::is_error)) loaded.policy.reset();
    loaded.findings.insert(loaded.findings.begin(), files.findings.begin(), files.findings.end());
  }
  return loaded;
}

Loaded load(std::span<const fs::path> paths, const LoadOptions& options) { return load(read_files(paths), options); }

}  // namespace sluice::policy
