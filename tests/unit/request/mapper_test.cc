#include "request/mapper.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/request/mapping.h"

namespace sluice::request {
namespace {

TEST(Mapper, a_pasted_envoy_route) {
  Mapping mapping(R"(
  trusted_proxies: [10.0.0.0/8]
  rate_limits:
    - actions:
        - generic_key: { descriptor_value: global }
    - actions:
        - remote_address: {}
    - stage: 0
      actions:
        - masked_remote_address: { v4_prefix_mask_len: 24, v6_prefix_mask_len: 48 }
    - actions:
        - request_headers: { header_name: ":path", descriptor_key: path }
        - request_headers: { header_name: x-tenant, descriptor_key: tenant, skip_if_absent: true }
    - actions:
        - request_headers: { header_name: X-User, descriptor_key: user }
    - actions:
        - header_value_match:
            descriptor_value: mobile
            headers: [ { name: user-agent, string_match: { contains: phone, ignore_case: true } } ]
    - actions:
        - query_parameter_value_match:
            descriptor_value: debugging
            query_parameters: [ { name: debug, present_match: true } ]
    - actions:
        - query_parameters: { query_parameter_name: q, descriptor_key: query }
)");
  EXPECT_EQ(mapping.of({{"X-Forwarded-For", "198.51.100.9"}}),
            "(generic_key=global) (remote_address=198.51.100.9) (masked_remote_address=198.51.100.0/24) (path=/)");
  EXPECT_EQ(
      mapping.of(
          {{"X-Forwarded-For", "2001:db8:1:2::9"}, {"x-user", "7"}, {"X-Tenant", "t"}, {"User-Agent", "My PHONE"}},
          "/a?debug&q=x%20y"),
      "(generic_key=global) (remote_address=2001:db8:1:2::/64) (masked_remote_address=2001:db8:1::/48) "
      "(path=/a?debug&q=x%20y, tenant=t) (user=7) (header_match=mobile) (query_match=debugging) (query=x y)");
}

TEST(Mapper, values_match_as_in_envoy) {
  Mapping mapping(R"(
  rate_limits:
    - actions: [ { header_value_match: { descriptor_value: exact, headers: [ { name: a, exact_match: X } ] } } ]
    - actions: [ { header_value_match: { descriptor_value: not, expect_match: false, headers: [ { name: a, exact_match: X } ] } } ]
    - actions: [ { header_value_match: { descriptor_value: inverted, headers: [ { name: a, prefix_match: X, invert_match: true } ] } } ]
    - actions: [ { header_value_match: { descriptor_value: range, headers: [ { name: a, range_match: { start: -5, end: 10 } } ] } } ]
    - actions: [ { header_value_match: { descriptor_value: absent, headers: [ { name: a, present_match: false } ] } } ]
    - actions: [ { header_value_match: { descriptor_value: empty, headers: [ { name: a, string_match: { exact: "" }, treat_missing_header_as_empty: true } ] } } ]
)");
  EXPECT_EQ(mapping.of({{"a", "X"}}), "(header_match=exact)");
  EXPECT_EQ(mapping.of({{"a", "9"}}), "(header_match=not) (header_match=inverted) (header_match=range)");
  EXPECT_EQ(mapping.of({{"a", "10"}}), "(header_match=not) (header_match=inverted)");
  EXPECT_EQ(mapping.of({{"a", "-5"}}), "(header_match=not) (header_match=inverted) (header_match=range)");
  EXPECT_EQ(mapping.of({}), "(header_match=not) (header_match=absent) (header_match=empty)");
}

TEST(Mapper, an_action_that_finds_nothing_drops_its_descriptor_alone) {
  Mapping mapping(R"(
  rate_limits:
    - actions: [ { request_headers: { header_name: a, descriptor_key: a } }, { request_headers: { header_name: b, descriptor_key: b } } ]
    - actions: [ { request_headers: { header_name: b, descriptor_key: b, skip_if_absent: true } } ]
    - actions: [ method, path, { route: { patterns: ["/x/{id}", "GET /y"] } } ]
    - actions: [ { cookie: { name: session } } ]
)");
  EXPECT_EQ(mapping.of({{"a", "1"}}), "");
  EXPECT_EQ(mapping.of({{"a", "1"}, {"b", ""}}, "/y/"), "(a=1, b=) (b=) (method=GET, path=/y, route=GET /y)");
  EXPECT_EQ(mapping.of({{"Cookie", "session=s"}}, "/x/7"), "(method=GET, path=/x/7, route=/x/{id}) (session=s)");
}

TEST(Mapper, a_framework_tells_its_own_route) {
  Mapping mapping("  rate_limits: [ { actions: [ route ] } ]\n");
  HttpRequest request;
  EXPECT_EQ(mapping.of(request), "");
  request.route = "/articles/{id}";
  EXPECT_EQ(mapping.of(request), "(route=/articles/{id})");
}

TEST(Mapper, costs) {
  Mapping mapping(R"(
  cost: { header_name: x-weight, default: 2 }
  rate_limits:
    - actions: [ { generic_key: { descriptor_value: a } } ]
    - actions: [ { generic_key: { descriptor_value: b } }, { cost: 5 } ]
    - actions: [ { generic_key: { descriptor_value: c } } ]
      cost: { header_name: X-Cost }
    - actions: [ { generic_key: { descriptor_value: d } } ]
      hits_addend: { format: "%REQ(x-cost)%" }
    - actions: [ { generic_key: { descriptor_value: e } } ]
      hits_addend: { number: 0 }
)");
  const auto costs = [&](std::string_view header, std::string_view weight) {
    const std::string all = mapping.of({{"x-cost", header}, {"x-weight", weight}});
    return std::to_string(mapping.mapper().request().cost) + all.substr(all.find("=b"));
  };
  EXPECT_EQ(costs("7", "3"), "3=b)×5 (generic_key=c)×7 (generic_key=d)×7 (generic_key=e)×0");
  // Nothing, nonsense and 0 are not free.
  for (const std::string_view odd : {"", "0", "-1", "1.5", "1x", " 1", "+1", "0x10", "many"}) {
    EXPECT_EQ(costs(odd, odd), "2=b)×5 (generic_key=c)×1 (generic_key=d)×1 (generic_key=e)×0") << odd;
  }
  // More than any limit has, so it never fits.
  for (const std::string_view large : {"1000000000000001", "18446744073709551616", "99999999999999999999999"}) {
    EXPECT_EQ(costs(large, "1"),
              "1=b)×5 (generic_key=c)×1000000000000000 (generic_key=d)×1000000000000000 (generic_key=e)×0");
  }
}

constexpr std::string_view kUsers = R"(
  jwt: { algorithms: [HS256], secret_file: secret, issuer: me }
  api_keys: { file: keys }
  trusted_proxies: []
  rate_limits:
    - actions: [ { jwt_claim: { claim: sub, descriptor_key: user, on_missing: ON } } ]
)";

std::string with(std::string_view on_missing) {
  std::string text(kUsers);
  return text.replace(text.find("ON }"), 2, on_missing);
}

TEST(Mapper, a_missing_identity_is_denied_skipped_or_counted_otherwise) {
  Mapping denied(with("deny"));
  EXPECT_EQ(denied.of({{"Authorization", bearer(R"({"sub":"7","iss":"me"})")}}), "(user=7)");
  EXPECT_EQ(denied.of({}), "401: a token is needed");
  EXPECT_EQ(denied.mapper().challenge(), "Bearer");
  EXPECT_EQ(denied.of({{"Authorization", "Basic eDp5"}}), "401: a token is needed");
  EXPECT_EQ(denied.of({{"Authorization", "Bearer "}}), "401: a token is needed");
  EXPECT_EQ(denied.of({{"Authorization", bearer(R"({"sub":"7"})")}}), "401: the token has another issuer");
  EXPECT_EQ(denied.mapper().challenge(), R"(Bearer error="invalid_token")");
  EXPECT_EQ(denied.of({{"Authorization", bearer(R"({"iss":"me"})")}}), "401: the token lacks a claim that is needed");
  EXPECT_EQ(denied.of({{"Authorization", bearer(R"({"sub":"7","iss":"me","exp":1})")}}), "401: the token has expired");
  const std::string good = bearer(R"({"sub":"7","iss":"me"})");
  EXPECT_EQ(denied.of({{"Authorization", good}, {"authorization", good}}), "401: there are several tokens");

  Mapping skipped(with("skip"));
  EXPECT_EQ(skipped.of({}), "");
  Mapping other(with("remote_address"));
  EXPECT_EQ(other.of({}), "(remote_address=10.0.0.5)");
  Mapping chain(with("{ api_key: { header_name: x-key, descriptor_key: user, on_missing: remote_address } }"));
  EXPECT_EQ(chain.of({{"X-Key", "live_AAAA1"}}), "(user=alice)");
  EXPECT_EQ(chain.of({{"X-Key", "nonsense"}}), "(remote_address=10.0.0.5)");
}

TEST(Mapper, an_empty_identity_is_a_missing_one) {
  Mapping header(
      "  rate_limits: [ { actions: [ { request_headers: { header_name: x-id, descriptor_key: id, on_missing: "
      "deny } } ] } ]\n");
  EXPECT_EQ(header.of({{"X-Id", "7"}}), "(id=7)");
  EXPECT_EQ(header.of({{"X-Id", ""}}), "401: the header x-id is empty");
  Mapping parameter(
      "  trusted_proxies: []\n  rate_limits: [ { actions: [ { query_parameters: { query_parameter_name: q, "
      "descriptor_key: q, on_missing: remote_address } } ] } ]\n");
  EXPECT_EQ(parameter.of({}, "/?q=1"), "(q=1)");
  EXPECT_EQ(parameter.of({}, "/?q="), "(remote_address=10.0.0.5)");
}

TEST(Mapper, without_a_word_about_it_a_missing_identity_is_denied) {
  Mapping mapping(R"(
  api_keys: { file: keys }
  rate_limits: [ { actions: [ { api_key: { header_name: x-key } } ] } ]
)");
  EXPECT_EQ(mapping.of({{"x-key", "live_AAAA2"}}), "(api_key=bob)");
  EXPECT_EQ(mapping.of({}), "401: an API key is needed");
  EXPECT_EQ(mapping.of({{"x-key", "live_AAAA"}}), "401: the API key is not known");
  EXPECT_EQ(mapping.of({{"x-key", "live_AAAA1"}, {"X-Key", "live_AAAA2"}}), "401: there are several API keys");
}

TEST(Mapper, two_credentials_are_none_wherever_they_are) {
  const std::string one = bearer(R"({"sub":"1"})").substr(7);
  const std::string two = bearer(R"({"sub":"2"})").substr(7);
  const auto token = [&](std::string_view on_missing, std::string_view cookies, std::string_view more = "") {
    Mapping mapping(
        "  trusted_proxies: []\n  jwt: { algorithms: [HS256], secret_file: secret, cookie_name: t }\n"
        "  rate_limits: [ { actions: [ { jwt_claim: { claim: sub, on_missing: " +
        std::string(on_missing) + " } } ] } ]\n");
    return mapping.of({{"Cookie", cookies}, {"Cookie", more}});
  };
  EXPECT_EQ(token("deny", "t=" + one + "; t=" + one, "t=" + one), "(sub=1)");
  EXPECT_EQ(token("deny", "t=" + one + "; t=" + two), "401: there are several tokens");
  EXPECT_EQ(token("deny", "t=" + one, "a=b; t=" + two), "401: there are several tokens");
  EXPECT_EQ(token("deny", "t=" + one + "; t="), "401: there are several tokens");
  EXPECT_EQ(token("remote_address", "t=" + one, "t=" + two), "(remote_address=10.0.0.5)");
  EXPECT_EQ(token("skip", "t=" + one, "t=" + two), "");

  Mapping cookie("  api_keys: { file: keys }\n  rate_limits: [ { actions: [ { api_key: { cookie_name: k } } ] } ]\n");
  EXPECT_EQ(cookie.of({{"Cookie", "k=live_AAAA1; k=live_AAAA1"}}), "(api_key=alice)");
  EXPECT_EQ(cookie.of({{"Cookie", "k=live_AAAA1; k=live_AAAA2"}}), "401: there are several API keys");
  EXPECT_EQ(cookie.of({{"Cookie", "k=live_AAAA1"}, {"Cookie", "k=x"}}), "401: there are several API keys");
  Mapping parameter(
      "  api_keys: { file: keys }\n  rate_limits: [ { actions: [ { api_key: { query_parameter_name: k } } ] } ]\n");
  EXPECT_EQ(parameter.of({}, "/?k=live_AAAA1&k=live_AAA%411"), "(api_key=alice)");
  EXPECT_EQ(parameter.of({}, "/?k=live_AAAA1&k=live_AAAA2"), "401: there are several API keys");
}

TEST(Mapper, a_host_that_is_none_is_missing_and_a_malformed_one_is_refused) {
  Mapping mapping(
      "  rate_limits: [ { actions: [ { request_headers: { header_name: host, descriptor_key: host } } ] } ]\n");
  EXPECT_EQ(mapping.of({{"Host", "Shop.example:0443"}}), "(host=shop.example)");
  EXPECT_EQ(mapping.of({{"Host", ".:80"}}), "");
  EXPECT_EQ(mapping.of({{"Host", ""}}), "");
  EXPECT_EQ(mapping.of({{"Host", "shop.example:x"}}), "401: the host is malformed");
  EXPECT_TRUE(mapping.mapper().is_malformed());
  EXPECT_EQ(mapping.of({{"Host", "a"}}), "(host=a)");
  EXPECT_FALSE(mapping.mapper().is_malformed());
  Mapping needed(
      "  rate_limits: [ { actions: [ { request_headers: { header_name: ':authority', descriptor_key: h, on_missing: "
      "deny } } ] } ]\n");
  EXPECT_EQ(
      needed.of(HttpRequest{.method = "GET", .target = "/", .host = ":80", .scheme = {}, .peer = {}, .route = {}}),
      "401: the header :authority names no host");
}

TEST(Mapper, tokens_in_cookies_and_other_headers) {
  Mapping cookie(R"(
  jwt: { algorithms: [HS256], secret_file: secret, cookie_name: token }
  rate_limits: [ { actions: [ { jwt_claim: { claim: realm.user } } ] } ]
)");
  const std::string token = bearer(R"({"realm":{"user":"u"}})").substr(7);
  EXPECT_EQ(cookie.of({{"Cookie", "token=" + token}}), "(user=u)");
  EXPECT_EQ(cookie.of({{"Authorization", "Bearer " + token}}), "401: a token is needed");
  Mapping header(R"(
  jwt: { algorithms: [HS256], secret_file: secret, header_name: X-Token }
  rate_limits: [ { actions: [ { jwt_claim: { claim: [realm, user], descriptor_key: u } } ] } ]
)");
  EXPECT_EQ(header.of({{"x-token", token}}), "(u=u)");
  EXPECT_EQ(header.of({{"x-token", "bearer  " + token}}), "(u=u)");
}

TEST(Mapper, the_address_is_told_by_one_field_alone) {
  const auto mapped = [](std::string_view source) {
    Mapping mapping("  trusted_proxies: [10.0.0.0/8]\n  client_address: " + std::string(source) +
                    "\n  rate_limits: [ { actions: [ remote_address ] } ]\n");
    return mapping.of({{"X-Forwarded-For", "1.1.1.1"}, {"Forwarded", "for=2.2.2.2"}, {"X-Real-IP", "3.3.3.3"}});
  };
  EXPECT_EQ(mapped("x-forwarded-for"), "(remote_address=1.1.1.1)");
  EXPECT_EQ(mapped("Forwarded"), "(remote_address=2.2.2.2)");
  EXPECT_EQ(mapped("X-Real-IP"), "(remote_address=3.3.3.3)");
}

TEST(Mapper, an_address_that_is_not_known_is_no_address) {
  Mapping mapping("  trusted_proxies: []\n  rate_limits: [ { actions: [ remote_address ] } ]\n");
  for (const std::string_view peer : {"", "unix:", "@", "localhost"}) EXPECT_EQ(mapping.of({}, "/", peer), "");
  EXPECT_EQ(mapping.of({}, "/", "[::ffff:1.2.3.4]:9"), "(remote_address=1.2.3.4)");
}

TEST(Mapper, a_peer_on_a_unix_socket_is_a_proxy_where_that_is_said) {
  const auto mapped = [](std::string_view trusted, std::string_view peer) {
    Mapping mapping("  trusted_proxies: " + std::string(trusted) +
                    "\n  rate_limits: [ { actions: [ { remote_address: { on_missing: deny } } ] } ]\n");
    return mapping.of({{"X-Forwarded-For", "1.1.1.1, 2.2.2.2, 10.0.0.9"}}, "/", peer);
  };
  EXPECT_EQ(mapped("[unix]", "unix:"), "(remote_address=10.0.0.9)");
  EXPECT_EQ(mapped("[10.0.0.0/8, 'unix:']", "unix:/run/shop.sock"), "(remote_address=2.2.2.2)");
  EXPECT_EQ(mapped("[unix]", "10.0.0.5"), "(remote_address=10.0.0.5)");
  for (const std::string_view other : {"", "@", "localhost"}) {
    EXPECT_EQ(mapped("[unix]", other), "401: the client's address is not known") << other;
  }
  EXPECT_EQ(mapped("[10.0.0.0/8]", "unix:"), "401: the client's address is not known");
}

TEST(Mapper, is_used_again_without_traces) {
  Mapping mapping(R"(
  trusted_proxies: []
  rate_limits:
    - actions: [ remote_address, path, { query_parameters: { query_parameter_name: q, descriptor_key: q } } ]
)");
  for (int i = 0; i < 3; ++i) {
    const std::string n = std::to_string(i);
    EXPECT_EQ(mapping.of({}, "/" + n + "?q=" + n, "1.1.1." + n),
              "(remote_address=1.1.1." + n + ", path=/" + n + ", q=" + n + ")");
    EXPECT_EQ(mapping.of({}, "/x"), "");
  }
}

}  // namespace
}  // namespace sluice::request
