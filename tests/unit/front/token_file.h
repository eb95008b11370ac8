// A file of tokens and the guard that asks for them, for tests of fronts.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "identity/guard.h"

namespace sluice::front {

/// Goes with the test.
class TokenFile {
 public:
  static constexpr std::string_view kUsual = "ops let-me-in\nprometheus scrape-me\n";

  explicit TokenFile(std::string_view text = kUsual) {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-tokens-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    write(text);
    const auto tokens = identity::ApiKeyFile::open(
        (folder_ / "tokens").string(), [](std::string_view read) { return identity::ApiKeys::parse(read); });
    EXPECT_TRUE(tokens);
    tokens_ = *tokens;
  }
  ~TokenFile() { std::filesystem::remove_all(folder_); }
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  /// Other tokens: they hold a second later.
  void write(std::string_view text) const {
    std::ofstream(folder_ / "next", std::ios::binary) << text;
    std::filesystem::rename(folder_ / "next", folder_ / "tokens");
  }
  [[nodiscard]] identity::Guard guard() const { return {.is_on = true, .tokens = tokens_.get()}; }

 private:
  std::filesystem::path folder_;
  std::shared_ptr<identity::ApiKeyFile> tokens_;
};

}  // namespace sluice::front
