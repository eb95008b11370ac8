#include "policy/requests_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/duration.h"
#include "base/suggest.h"
#include "policy/actions_reader.h"
#include "policy/field_reader.h"
#include "policy/requests_fields.h"
#include "sluice/http_request.h"

namespace sluice::policy {
namespace {

using identity::JwtAlgorithm;
using identity::KeyKind;
using identity::KeySet;

class RequestsReader {
 public:
  RequestsReader(const yaml::Node& map, std::string_view domain, Findings& findings)
      : map_(map), fields_(map, findings), findings_(findings) {
    rules_->domain = domain;
  }

  std::shared_ptr<const request::Rules> read() {
    const std::size_t errors = findings_.errors();
    check_keys(fields_,
               {"domain", "trusted_proxies", "client_address", "jwt", "api_keys", "cost", "allow_status", "deny_status",
                "rate_limits"},
               "in `requests`", findings_);
    if (const auto domain = fields_.text("domain")) rules_->domain = *domain;
    if (rules_->domain.empty()) findings_.error(map_.position, "`requests` needs the `domain` of a policy, found none");
    read_addresses();
    read_statuses();
    if (const Field* cost = fields_.find("cost")) rules_->cost = read_cost(*cost->value, findings_);
    for (const yaml::Node* item : fields_.maps("rate_limits")) {
      rules_->descriptors.push_back(read_descriptor_rule(*item, needs_, findings_));
    }
    if (fields_.find("rate_limits") == nullptr) {
      findings_.error(map_.position, "`requests` needs `rate_limits`: what a request is counted by");
    }
    read_jwt();
    read_api_keys();
    rules_->counts_address = needs_.address.has_value();
    if (needs_.address && fields_.find("trusted_proxies") == nullptr) {
      findings_.warning(*needs_.address,
                        "without `trusted_proxies` the client is whoever is connected: behind a proxy, all of its "
                        "clients together (trusted_proxies: [] says that this is meant)");
    }
    if (findings_.errors() != errors) return nullptr;
    return rules_;
  }

 private:
  void read_addresses() {
    for (const PlacedText& text : texts_of(fields_, "trusted_proxies", findings_)) {
      if (text.text == "unix" || text.text == kUnixPeer) {
        rules_->trusts_unix = true;
        continue;
      }
      Result<identity::Network> network = identity::Network::parse(text.text);
      if (network) {
        rules_->trusted_proxies.push_back(*network);
        if (network->bits() == 0) {
          findings_.warning(text.position, fmt::format("`trusted_proxies`: {} trusts everybody, so every client can "
                                                       "write the address that it is counted by",
                                                       text.text));
        }
      } else {
        findings_.error(
            text.position,
            fmt::format("`trusted_proxies`: {}{}", network.error().message,
                        text.text.starts_with("unix") ? "; peers on Unix sockets, all of them, are `unix`" : ""));
      }
    }
    const auto source = fields_.text("client_address");
    if (!source) return;
    const std::string name = lower_case(*source);
    if (name == "x-forwarded-for") {
      rules_->address_syntax = identity::AddressSyntax::list;
    } else if (name == "forwarded") {
      rules_->address_syntax = identity::AddressSyntax::forwarded;
    } else if (name == "x-real-ip") {
      rules_->address_syntax = identity::AddressSyntax::single;
    } else {
      findings_.error(fields_.find("client_address")->value->position,
                      fmt::format("`client_address` must be one of x-forwarded-for, forwarded, x-real-ip, found {}",
                                  quote(*source)));
    }
    rules_->address_header = name;
  }

  void read_statuses() {
    const auto read = [&](std::string_view name, unsigned first, unsigned second) -> std::optional<unsigned> {
      const auto status = fields_.number(name, 100, 599);
      if (!status) return std::nullopt;
      if (*status != first && *status != second) {
        findings_.error(fields_.find(name)->value->position,
                        fmt::format("`{}` must be {} or {}, found {}", name, first, second, *status));
      }
      return static_cast<unsigned>(*status);
    };
    rules_->allow_status = read("allow_status", 200, 204).value_or(200);
    rules_->deny_status = read("deny_status", 429, 403);
  }

  /// A file that is named relative to the policy's.
  [[nodiscard]] std::string path_of(std::string_view text) const {
    return (std::filesystem::path(findings_.file()).parent_path() / std::filesystem::path(text)).string();
  }

  void read_jwt() {
    const Field* field = fields_.find("jwt");
    if (field == nullptr) {
      if (needs_.claim) {
        findings_.error(*needs_.claim, "`jwt_claim` needs `jwt` in `requests`: how tokens are verified");
      }
      return;
    }
    if (!needs_.claim) findings_.warning(field->key->position, "`jwt` does nothing without a `jwt_claim`");
    const FieldReader fields(map_of(*field->value, "jwt", findings_), findings_);
    check_keys(fields,
               {"algorithms", "public_key_file", "jwks_file", "secret_file", "issuer", "audience", "leeway",
                "header_name", "cookie_name", "cache"},
               "in `jwt`", findings_);
    auto source = std::make_shared<identity::JwtSource>();
    const std::size_t errors = findings_.errors();
    read_algorithms(fields, *field->value, source->rules);
    for (PlacedText& text : texts_of(fields, "issuer", findings_))
      source->rules.issuers.push_back(std::move(text.text));
    for (PlacedText& text : texts_of(fields, "audience", findings_)) {
      source->rules.audiences.push_back(std::move(text.text));
    }
    for (const std::string_view party : {"issuer", "audience"}) {
      const Field* const asked = fields.find(party);
      const bool is_any = party == "issuer" ? source->rules.issuers.empty() : source->rules.audiences.empty();
      if (asked != nullptr && is_any && findings_.errors() == errors) {
        findings_.error(asked->value->position,
                        fmt::format("`{}` names nobody: leave it out to accept tokens of any", party));
      }
    }
    read_leeway(fields, source->rules);
    source->cache = fields.number("cache", 1, 1'000'000).value_or(source->cache);
    source->rules.claims = needs_.claims;
    rules_->jwt_cookie = fields.text("cookie_name").value_or("");
    if (const auto header = fields.text("header_name")) {
      rules_->jwt_header = lower_case(*header);
    } else if (!rules_->jwt_cookie.empty()) {
      rules_->jwt_header.clear();
    }
    if (findings_.errors() == errors) open_keys(fields, *field->value, *source);
    rules_->jwt = std::move(source);
  }

  void read_algorithms(const FieldReader& fields, const yaml::Node& map, identity::JwtRules& rules) {
    const auto names = identity::algorithm_names();
    for (const PlacedText& text : texts_of(fields, "algorithms", findings_)) {
      if (const auto algorithm = identity::find_algorithm(text.text)) {
        rules.algorithms.push_back(*algorithm);
      } else if (lower_case(text.text) == "none") {
        findings_.error(text.position, "`none` is never accepted: anybody could write such a token");
      } else {
        const std::string_view meant = nearest(text.text, names);
        findings_.error(text.position,
                        fmt::format("`algorithms` holds some of {}; found {}{}", fmt::join(names, ", "),
                                    quote(text.text), meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
      }
    }
    if (fields.find("algorithms") == nullptr || fields.find("algorithms")->value->values.empty()) {
      if (rules.algorithms.empty() && fields.text("algorithms").value_or("").empty()) {
        findings_.error(map.position, fmt::format("`jwt` needs the `algorithms` that are accepted, some of {}",
                                                  fmt::join(names, ", ")));
      }
    }
  }

  void read_leeway(const FieldReader& fields, identity::JwtRules& rules) {
    const auto text = fields.text("leeway");
    if (!text) return;
    constexpr std::chrono::nanoseconds most = std::chrono::hours(1);
    const Result<std::chrono::nanoseconds> leeway = parse_duration(*text);
    if (!leeway) {
      findings_.error(fields.find("leeway")->value->position, fmt::format("`leeway`: {}", leeway.error().message));
    } else if (leeway->count() < 0 || *leeway > most) {
      findings_.error(fields.find("leeway")->value->position,
                      fmt::format("`leeway` must be from 0s to 1h, found {}", quote(*text)));
    } else {
      rules.leeway = *leeway;
    }
  }

  void open_keys(const FieldReader& fields, const yaml::Node& map, identity::JwtSource& source) {
    struct KeyField {
      std::string_view name;
      Result<std::shared_ptr<const KeySet>> (*parse)(std::string_view text);
    };
    bool has_any = false;
    const std::size_t errors = findings_.errors();
    for (const KeyField& field :
         {KeyField{"public_key_file", KeySet::from_pem}, KeyField{"jwks_file", KeySet::from_jwks},
          KeyField{"secret_file", KeySet::from_secret}}) {
      const auto text = fields.text(field.name);
      if (!text) continue;
      has_any = true;
      auto file = identity::KeyFile::open(path_of(*text), field.parse);
      if (file) {
        source.files.push_back(*std::move(file));
      } else {
        findings_.error(fields.find(field.name)->value->position,
                        fmt::format("`{}`: {}", field.name, file.error().message));
      }
    }
    if (!has_any) {
      findings_.error(map.position, "`jwt` needs keys: a public_key_file (PEM), a jwks_file or a secret_file");
    }
    if (findings_.errors() == errors) check_keys_fit(fields, source);
  }

  void check_keys_fit(const FieldReader& fields, const identity::JwtSource& source) {
    const yaml::Position place = fields.find("algorithms")->value->position;
    for (const JwtAlgorithm algorithm : source.rules.algorithms) {
      bool fits = false;
      for (const auto& file : source.files) {
        const auto keys = file->get();
        for (const identity::VerificationKey& key : keys->keys()) {
          fits = fits || key.allows(algorithm);
          if (key.allows(algorithm) && key.kind() == KeyKind::secret &&
              key.secret_size() < identity::hash_bytes(algorithm)) {
            findings_.warning(
                place, fmt::format("the secret has {} bytes, but {} wants {} at least (RFC 7518); shorter "
                                   "ones can be guessed",
                                   key.secret_size(), identity::name_of(algorithm), identity::hash_bytes(algorithm)));
          }
        }
      }
      if (!fits) {
        findings_.error(place, fmt::format("no key fits the algorithm {}", identity::name_of(algorithm)));
      }
    }
  }

  void read_api_keys() {
    const Field* field = fields_.find("api_keys");
    if (field == nullptr) {
      if (needs_.api_key) {
        findings_.error(*needs_.api_key,
                        "`api_key` needs `api_keys: { file: … }` in `requests`: which keys there are. To count by "
                        "whatever a header says, use `request_headers`");
      }
      return;
    }
    if (!needs_.api_key) findings_.warning(field->key->position, "`api_keys` does nothing without an `api_key`");
    const FieldReader fields(map_of(*field->value, "api_keys", findings_), findings_);
    check_keys(fields, {"file"}, "in `api_keys`", findings_);
    const auto text = fields.text("file");
    if (!text || text->empty()) {
      findings_.error(field->value->position, "`api_keys` needs a `file`, found none");
      return;
    }
    auto file = identity::open_api_keys(path_of(*text));
    if (file) {
      rules_->api_keys = *std::move(file);
    } else {
      findings_.error(fields.find("file")->value->position, fmt::format("`file`: {}", file.error().message));
    }
  }

  const yaml::Node& map_;
  FieldReader fields_;
  Findings& findings_;
  std::shared_ptr<request::Rules> rules_ = std::make_shared<request::Rules>();
  ActionNeeds needs_;
};

}  // namespace

std::shared_ptr<const request::Rules> read_requests(const yaml::Node& node, std::string_view domain,
                                                    Findings& findings) {
  if (node.kind != yaml::Node::Kind::map) {
    findings.error(node.position,
                   fmt::format("`requests` must be a map with `rate_limits`, found {}", described(node)));
    return nullptr;
  }
  return RequestsReader(node, domain, findings).read();
}

}  // namespace sluice::policy
