#include "request/mapper.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <system_error>
#include <utility>

#include "base/ascii.h"
#include "identity/guard.h"
#include "request/lookup.h"

namespace sluice::request {
namespace {

using identity::IpAddress;

constexpr std::string_view kBearer = "Bearer";
constexpr std::string_view kBadBearer = R"(Bearer error="invalid_token")";
constexpr std::string_view kApiKey = "ApiKey";

std::string_view with_case(bool ignore, std::string_view text, std::string& lowered) {
  if (!ignore) return text;
  lowered.clear();
  for (const char c : text) lowered += to_lower(c);
  return lowered;
}

/// Precondition: with ignore_case, the match's text is in lower case.
bool holds(const Match& match, std::string_view value, std::string& lowered) {
  const std::string_view text = with_case(match.ignore_case, value, lowered);
  switch (match.kind) {
    case Match::Kind::present:
      return true;
    case Match::Kind::exact:
      return text == match.text;
    case Match::Kind::prefix:
      return text.starts_with(match.text);
    case Match::Kind::suffix:
      return text.ends_with(match.text);
    case Match::Kind::contains:
      return text.find(match.text) != std::string_view::npos;
    case Match::Kind::range:
      break;
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && number >= match.begin && number < match.end;
}

}  // namespace

Mapper::Mapper(std::shared_ptr<const Rules> rules) : rules_(std::move(rules)) {
  if (rules_->jwt != nullptr) verifier_.emplace(rules_->jwt);
}

bool Mapper::map(const HttpRequest& http, Time now) {
  http_ = &http;
  now_ = now;
  has_client_ = has_path_ = has_token_ = is_malformed_ = false;
  used_texts_ = 0;
  entries_.clear();
  descriptors_.clear();
  parts_.clear();
  request_ = {};
  for (const DescriptorRule& rule : rules_->descriptors) {
    const std::size_t begin = entries_.size();
    Outcome outcome = Outcome::left_out;
    for (const Action& action : rule.actions) {
      outcome = apply(action);
      if (outcome == Outcome::refused) return false;
      if (outcome == Outcome::dropped) break;
    }
    if (outcome == Outcome::dropped || entries_.size() == begin) {
      entries_.resize(begin);
      continue;
    }
    Descriptor& descriptor = descriptors_.emplace_back();
    if (rule.cost) descriptor.cost = cost_of(*rule.cost);
    parts_.push_back({begin, entries_.size()});
  }
  for (std::size_t i = 0; i < descriptors_.size(); ++i) {
    descriptors_[i].entries = std::span(entries_).subspan(parts_[i].begin, parts_[i].end - parts_[i].begin);
  }
  request_ = {.domain = rules_->domain, .descriptors = descriptors_, .cost = cost_of(rules_->cost)};
  return true;
}

Mapper::Outcome Mapper::apply(const Action& action) {
  switch (action.kind) {
    case Action::Kind::generic_key:
      return add(action.key, action.value);
    case Action::Kind::remote_address:
    case Action::Kind::masked_remote_address:
      return add_address(action);
    case Action::Kind::request_headers:
      return add_header(action);
    case Action::Kind::header_value_match:
    case Action::Kind::query_parameter_value_match: {
      const bool in_query = action.kind == Action::Kind::query_parameter_value_match;
      const bool all =
          std::ranges::all_of(action.matches, [&](const Match& match) { return matches(match, in_query); });
      return all == action.expect_match ? add(action.key, action.value) : Outcome::dropped;
    }
    case Action::Kind::query_parameters:
      return add_parameter(action);
    case Action::Kind::jwt_claim:
      return add_claim(action);
    case Action::Kind::api_key:
      return add_api_key(action);
    case Action::Kind::cookie: {
      const std::optional<std::string_view> value = find_cookie(*http_, action.source).first;
      if (!value || value->empty()) return missing(action, "the cookie ", "is missing", {});
      return add(action.key, *value);
    }
    case Action::Kind::method:
      return http_->method.empty() ? Outcome::dropped : add(action.key, http_->method);
    case Action::Kind::path: {
      if (http_->target.empty()) return Outcome::dropped;
      std::string& text = scratch();
      path().append_to(text);
      return add(action.key, text);
    }
    case Action::Kind::route:
      return add_route(action);
  }
  return Outcome::dropped;
}

Mapper::Outcome Mapper::add(std::string_view key, std::string_view value) {
  entries_.push_back({key, value});
  return Outcome::added;
}

Mapper::Outcome Mapper::add_address(const Action& action) {
  const std::optional<IpAddress>& address = client();
  if (!address) return missing(action, "the client's address ", "is not known", {});
  const unsigned bits = address->is_v4() ? action.v4_bits : action.v6_bits;
  std::string& text = scratch();
  address->masked(bits).append_to(text);
  // Envoy writes masked addresses as networks, always.
  if (bits < address->bits() || action.kind == Action::Kind::masked_remote_address) {
    text += '/';
    text += std::to_string(bits);
  }
  return add(action.key, text);
}

Mapper::Outcome Mapper::add_header(const Action& action) {
  const FoundHeader header = find_header(*http_, action.source);
  if (!header.first) return missing(action, "the header ", "is missing", {});
  // Where an absent identity is not simply left out, neither is an empty one a counter that all share.
  if (header.first->empty() && action.on_missing != OnMissing::skip)
    return missing(action, "the header ", "is empty", {});
  if (action.source == ":authority" || action.source == "host") {
    std::string& text = scratch();
    switch (append_normal_host(*header.first, text)) {
      case HostForm::good:
        return add(action.key, text);
      case HostForm::none:
        return missing(action, "the header ", "names no host", {});
      case HostForm::malformed:
        // Not as a missing one: who writes nonsense behind a name would not be counted by it.
        refusal_ = "the host is malformed";
        challenge_ = {};
        is_malformed_ = true;
        return Outcome::refused;
    }
  }
  return add(action.key, *header.first);
}

Mapper::Outcome Mapper::add_parameter(const Action& action) {
  std::string& value = scratch();
  if (!find_parameter(http_->target, action.source, value)) return missing(action, "the parameter ", "is missing", {});
  if (value.empty() && action.on_missing != OnMissing::skip) return missing(action, "the parameter ", "is empty", {});
  return add(action.key, value);
}

Mapper::Outcome Mapper::add_claim(const Action& action) {
  read_token();
  if (is_ambiguous_) return missing(action, {}, "there are several tokens", kBadBearer);
  if (jwt_ == nullptr) return missing(action, {}, "a token is needed", kBearer);
  if (jwt_->fault != identity::JwtFault::none) return missing(action, "the token ", describe(jwt_->fault), kBadBearer);
  const std::optional<std::string>& claim = jwt_->claims[action.claim];
  if (!claim) return missing(action, {}, "the token lacks a claim that is needed", kBadBearer);
  return add(action.key, *claim);
}

Mapper::Outcome Mapper::add_api_key(const Action& action) {
  std::optional<std::string_view> key;
  bool is_ambiguous = false;
  switch (action.place) {
    case Place::header: {
      const FoundHeader header = find_header(*http_, action.source);
      is_ambiguous = header.count > 1;
      key = header.first;
      break;
    }
    case Place::parameter: {
      std::string& value = scratch();
      if (find_parameter(http_->target, action.source, value, &is_ambiguous)) key = value;
      break;
    }
    case Place::cookie: {
      const FoundCookie cookie = find_cookie(*http_, action.source);
      is_ambiguous = cookie.is_ambiguous;
      key = cookie.first;
      break;
    }
  }
  if (is_ambiguous) return missing(action, {}, "there are several API keys", kApiKey);
  if (!key || key->empty()) return missing(action, {}, "an API key is needed", kApiKey);
  rules_->api_keys->look(now_.steady);
  const std::shared_ptr<const identity::ApiKeys> table = rules_->api_keys->get();
  const std::string_view owner = table->owner_of(*key);
  if (owner.empty()) return missing(action, {}, "the API key is not known", kApiKey);
  std::string& text = scratch();  // the table may change
  text = owner;
  return add(action.key, text);
}

Mapper::Outcome Mapper::add_route(const Action& action) {
  if (action.routes.empty()) return http_->route.empty() ? Outcome::dropped : add(action.key, http_->route);
  if (http_->target.empty()) return Outcome::dropped;
  const std::span<const std::string_view> segments = path().segments();
  const auto found = std::ranges::find_if(
      action.routes, [&](const RoutePattern& pattern) { return pattern.matches(http_->method, segments); });
  return found == action.routes.end() ? Outcome::dropped : add(action.key, found->text());
}

Mapper::Outcome Mapper::missing(const Action& action, std::string_view what, std::string_view why,
                                std::string_view challenge) {
  if (action.skip_if_absent) return Outcome::left_out;
  if (action.on_missing == OnMissing::skip) return Outcome::dropped;
  if (action.on_missing == OnMissing::other) return apply(action.instead.front());
  refusal_ = what;
  if (!what.empty() && !action.source.empty() && action.kind != Action::Kind::jwt_claim)
    refusal_ += action.source + " ";
  refusal_ += why;
  challenge_ = challenge;
  return Outcome::refused;
}

bool Mapper::matches(const Match& match, bool in_query) {
  std::string& text = scratch();
  std::optional<std::string_view> value;
  if (!in_query) {
    value = find_header(*http_, match.name).first;
  } else if (find_parameter(http_->target, match.name, text)) {
    value = text;
  }
  if (!value && match.missing_is_empty) value = std::string_view{};
  // As in Envoy: what is absent matches nothing, and only `present` can be asked for in the negative then.
  if (!value) return match.kind == Match::Kind::present && match.invert;
  return holds(match, *value, scratch()) != match.invert;
}

std::uint64_t Mapper::cost_of(const Cost& cost) const {
  if (cost.header.empty()) return cost.constant;
  const FoundHeader header = find_header(*http_, cost.header);
  const std::string_view text = header.first.value_or(std::string_view{});
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = !text.empty() && end == text.data() + text.size();
  if (!is_number || error == std::errc::invalid_argument) return cost.constant;
  if (error == std::errc::result_out_of_range || value > kMaxTokens) return kMaxTokens;
  return value == 0 ? cost.constant : value;
}

const std::optional<IpAddress>& Mapper::client() {
  if (std::exchange(has_client_, true)) return client_;
  client_ = IpAddress::parse_node(http_->peer);
  const bool may_be_trusted =
      client_ ? !rules_->trusted_proxies.empty() : rules_->trusts_unix && http_->peer.starts_with(kUnixPeer);
  if (!may_be_trusted) return client_;
  lines_.clear();
  for (const HeaderField& field : http_->headers) {
    if (equal_ignoring_case(field.name, rules_->address_header)) lines_.push_back(field.value);
  }
  client_ = identity::client_address(client_, lines_, rules_->address_syntax, rules_->trusted_proxies);
  return client_;
}

const PathSegments& Mapper::path() {
  if (!std::exchange(has_path_, true)) path_.read(http_->target);
  return path_;
}

std::optional<std::string_view> Mapper::find_token(bool& is_ambiguous) const {
  is_ambiguous = false;
  if (!rules_->jwt_header.empty()) {
    const FoundHeader header = find_header(*http_, rules_->jwt_header);
    is_ambiguous = header.count > 1;
    if (is_ambiguous) return std::nullopt;
    if (header.first) {
      const std::string_view token = identity::bearer_of(*header.first);
      if (!token.empty()) return token;
      // A header of one's own holds the token alone.
      if (rules_->jwt_header != "authorization" && !header.first->empty()) return header.first;
    }
  }
  if (rules_->jwt_cookie.empty()) return std::nullopt;
  const FoundCookie cookie = find_cookie(*http_, rules_->jwt_cookie);
  is_ambiguous = cookie.is_ambiguous;
  return is_ambiguous ? std::nullopt : cookie.first;
}

void Mapper::read_token() {
  if (std::exchange(has_token_, true)) return;
  const std::optional<std::string_view> token = find_token(is_ambiguous_);
  jwt_ = token && verifier_ ? &verifier_->verify(*token, now_) : nullptr;
}

std::string& Mapper::scratch() {
  if (used_texts_ == texts_.size()) texts_.emplace_back();
  std::string& text = texts_[used_texts_++];
  text.clear();
  return text;
}

}  // namespace sluice::request
