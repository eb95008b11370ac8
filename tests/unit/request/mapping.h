// A `requests:` and requests for it, for tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/policy.h"
#include "request/mapper.h"
#include "tests/unit/identity/token_maker.h"

namespace sluice::request {

inline constexpr Time kNow{.steady = 1'000'000'000'000, .utc = 1'767'225'600'000'000'000};  // 2026-01-01

/// A folder with keys: `secret` (identity::kSecret) and `keys`, gone with its object.
class KeyFolder {
 public:
  KeyFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-request-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
    write("secret", identity::kSecret);
    write("keys", "alice live_AAAA1\nbob live_AAAA2\n");
  }
  ~KeyFolder() { std::filesystem::remove_all(path_); }
  KeyFolder(const KeyFolder&) = delete;
  KeyFolder& operator=(const KeyFolder&) = delete;

  void write(const std::string& name, std::string_view text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  /// Loads a policy of the domain `shop` with these lines under `requests:`.
  [[nodiscard]] policy::Loaded load(std::string_view requests) const {
    const std::vector<policy::SourceText> texts{{file("p.yaml"), "domain: shop\nrequests:\n" + std::string(requests)}};
    return policy::load_texts(texts);
  }
  /// All findings, one a line, without the folder.
  [[nodiscard]] std::string findings(std::string_view requests) const {
    std::string out;
    for (const policy::Finding& finding : load(requests).findings) {
      // Its domain is for what is counted by, and has no limits where these lines do not bring some.
      if (finding.message != "the domain \"shop\" has no limits: nothing is denied") out += finding.to_string() + "\n";
    }
    const std::string folder = path_.string() + "/";
    for (std::size_t at = out.find(folder); at != std::string::npos; at = out.find(folder)) {
      out.erase(at, folder.size());
    }
    return out;
  }

 private:
  std::filesystem::path path_;
};

/// A mapper of its own, and what it makes of requests.
class Mapping {
 public:
  explicit Mapping(std::string_view requests) {
    policy::Loaded loaded = folder_.load(requests);
    for (const policy::Finding& finding : loaded.findings) {
      EXPECT_NE(finding.severity, policy::Finding::Severity::error) << finding.to_string();
    }
    policy_ = loaded.policy;
    if (policy_ != nullptr) mapper_ = std::make_unique<Mapper>(policy_->requests().front());
  }

  /// "(key=value, key=value) (…)", with "×cost" behind a descriptor that has one; "401: why" when refused.
  std::string of(const HttpRequest& request, Time now = kNow) {
    if (mapper_ == nullptr) return "no mapper";
    if (!mapper_->map(request, now)) return "401: " + mapper_->refusal();
    std::string out;
    for (const Descriptor& descriptor : mapper_->request().descriptors) {
      if (!out.empty()) out += ' ';
      out += '(';
      for (const Entry& entry : descriptor.entries) {
        if (out.back() != '(') out += ", ";
        out.append(entry.key).append("=").append(entry.value);
      }
      out += ')';
      if (descriptor.cost) out += "×" + std::to_string(*descriptor.cost);
    }
    return out;
  }
  std::string of(std::initializer_list<HeaderField> headers, std::string_view target = "/",
                 std::string_view peer = "10.0.0.5") {
    const std::vector<HeaderField> fields(headers);
    return of(HttpRequest{.method = "GET",
                          .target = target,
                          .host = "shop.example",
                          .scheme = "https",
                          .peer = peer,
                          .route = {},
                          .headers = fields});
  }
  [[nodiscard]] const KeyFolder& folder() const { return folder_; }
  [[nodiscard]] Mapper& mapper() { return *mapper_; }

 private:
  KeyFolder folder_;
  std::shared_ptr<const policy::Policy> policy_;
  std::unique_ptr<Mapper> mapper_;
};

inline std::string bearer(std::string_view payload) {
  using identity::JwtAlgorithm;
  return "Bearer " + identity::signer_for(JwtAlgorithm::hs256).token(JwtAlgorithm::hs256, payload);
}

}  // namespace sluice::request
