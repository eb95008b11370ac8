// An HTTP request → the descriptors that it is counted by.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "identity/jwt_verifier.h"
#include "policy/request.h"
#include "request/rules.h"
#include "sluice/clock.h"
#include "sluice/http_request.h"

namespace sluice::request {

/// One thread's: it remembers tokens that were verified, and its buffers keep their capacity, so that after warm-up
/// only tokens that are new allocate. Not thread-safe.
class Mapper {
 public:
  explicit Mapper(std::shared_ptr<const Rules> rules);

  /// False: refused, as an identity that the rules demand is absent or cannot be verified (401), or is_malformed()
  /// (400). True: descriptors() are those of `http`; there may be none, then nothing limits it.
  [[nodiscard]] bool map(const HttpRequest& http, Time now);
  /// Views into `http` and the mapper: valid until the next map().
  [[nodiscard]] const Request& request() const { return request_; }
  /// Why it was refused: "the token has expired".
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  /// It was refused as no request of HTTP: its host, which counts, is none.
  [[nodiscard]] bool is_malformed() const { return is_malformed_; }
  /// What to answer in WWW-Authenticate; empty: nothing.
  [[nodiscard]] std::string_view challenge() const { return challenge_; }

  [[nodiscard]] const Rules& rules() const { return *rules_; }
  [[nodiscard]] const std::shared_ptr<const Rules>& shared_rules() const { return rules_; }

 private:
  enum class Outcome : std::uint8_t { added, left_out, dropped, refused };
  struct Part {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  [[nodiscard]] Outcome apply(const Action& action);
  [[nodiscard]] Outcome add(std::string_view key, std::string_view value);
  [[nodiscard]] Outcome add_address(const Action& action);
  [[nodiscard]] Outcome add_header(const Action& action);
  [[nodiscard]] Outcome add_parameter(const Action& action);
  [[nodiscard]] Outcome add_claim(const Action& action);
  [[nodiscard]] Outcome add_api_key(const Action& action);
  [[nodiscard]] Outcome add_route(const Action& action);
  [[nodiscard]] Outcome missing(const Action& action, std::string_view what, std::string_view why,
                                std::string_view challenge);
  [[nodiscard]] bool matches(const Match& match, bool in_query);
  [[nodiscard]] std::uint64_t cost_of(const Cost& cost) const;

  [[nodiscard]] const std::optional<identity::IpAddress>& client();
  [[nodiscard]] const PathSegments& path();
  void read_token();
  [[nodiscard]] std::optional<std::string_view> find_token(bool& is_ambiguous) const;
  /// Text that lives as long as the request's views.
  [[nodiscard]] std::string& scratch();

  std::shared_ptr<const Rules> rules_;
  std::optional<identity::JwtVerifier> verifier_;

  // Of the present request.
  const HttpRequest* http_ = nullptr;
  Time now_;
  bool has_client_ = false;
  std::optional<identity::IpAddress> client_;
  bool has_path_ = false;
  PathSegments path_;
  bool has_token_ = false;
  const identity::Jwt* jwt_ = nullptr;  ///< null: no token
  bool is_ambiguous_ = false;           ///< several tokens
  bool is_malformed_ = false;

  std::vector<Entry> entries_;
  std::vector<Descriptor> descriptors_;
  std::vector<Part> parts_;
  std::deque<std::string> texts_;
  std::size_t used_texts_ = 0;
  std::vector<std::string_view> lines_;
  std::string refusal_;
  std::string_view challenge_;
  Request request_;
};

}  // namespace sluice::request
