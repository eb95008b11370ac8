#include "identity/jwt.h"

#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <array>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/identity/token_maker.h"

namespace sluice::identity {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kNow = 1'767'225'600 * kSecond;  // 2026-01-01

constexpr std::array kAll{JwtAlgorithm::hs256, JwtAlgorithm::hs384, JwtAlgorithm::hs512, JwtAlgorithm::rs256,
                          JwtAlgorithm::rs384, JwtAlgorithm::rs512, JwtAlgorithm::ps256, JwtAlgorithm::ps384,
                          JwtAlgorithm::ps512, JwtAlgorithm::es256, JwtAlgorithm::es384, JwtAlgorithm::es512,
                          JwtAlgorithm::eddsa};

std::shared_ptr<const KeySet> set_of(Result<std::shared_ptr<const KeySet>> keys) {
  EXPECT_TRUE(keys) << keys.error().message;
  return keys ? *keys : std::make_shared<const KeySet>(std::vector<VerificationKey>{});
}

/// The keys of all signers as a JWK Set, without names.
std::shared_ptr<const KeySet> all_keys() {
  static const std::shared_ptr<const KeySet> keys = [] {
    std::string text = R"({"keys":[)";
    for (const JwtAlgorithm algorithm : {JwtAlgorithm::hs256, JwtAlgorithm::rs256, JwtAlgorithm::es256,
                                         JwtAlgorithm::es384, JwtAlgorithm::es512, JwtAlgorithm::eddsa}) {
      if (text.back() != '[') text += ',';
      text += '{' + signer_for(algorithm).jwk() + '}';
    }
    return set_of(KeySet::from_jwks(text + "]}"));
  }();
  return keys;
}

JwtRules rules_for(std::vector<JwtAlgorithm> algorithms) {
  JwtRules rules;
  rules.algorithms = std::move(algorithms);
  rules.claims = {{"sub"}};
  return rules;
}

Jwt verify(std::string_view token, const JwtRules& rules, const std::shared_ptr<const KeySet>& keys = all_keys(),
           std::int64_t utc = kNow) {
  const std::array<const KeySet*, 1> sets{keys.get()};
  return verify_jwt(token, rules, sets, utc);
}

TEST(Jwt, every_algorithm_verifies_its_own_tokens) {
  for (const JwtAlgorithm algorithm : kAll) {
    const std::string token = signer_for(algorithm).token(algorithm, R"({"sub":"42"})");
    const Jwt jwt = verify(token, rules_for({algorithm}));
    EXPECT_EQ(jwt.fault, JwtFault::none) << name_of(algorithm) << " " << describe(jwt.fault);
    EXPECT_EQ(jwt.claims[0], "42");
  }
}

TEST(Jwt, the_list_of_algorithms_rules) {
  for (const JwtAlgorithm algorithm : kAll) {
    const std::string token = signer_for(algorithm).token(algorithm, R"({"sub":"42"})");
    std::vector<JwtAlgorithm> others;
    for (const JwtAlgorithm other : kAll) {
      if (other != algorithm) others.push_back(other);
    }
    EXPECT_EQ(verify(token, rules_for(others)).fault, JwtFault::algorithm) << name_of(algorithm);
  }
}

TEST(Jwt, a_changed_byte_anywhere_is_refused) {
  for (const JwtAlgorithm algorithm : {JwtAlgorithm::hs256, JwtAlgorithm::rs256, JwtAlgorithm::es256}) {
    const std::string token = signer_for(algorithm).token(algorithm, R"({"sub":"42"})");
    for (std::size_t i = 0; i < token.size(); i += 7) {
      std::string forged = token;
      forged[i] = forged[i] == 'A' ? 'B' : 'A';
      const Jwt jwt = verify(forged, rules_for({algorithm}));
      EXPECT_NE(jwt.fault, JwtFault::none) << name_of(algorithm) << " " << i;
      EXPECT_FALSE(jwt.claims[0]);
    }
    for (const std::size_t cut : {std::size_t{0}, token.size() / 2, token.rfind('.'), token.size() - 1}) {
      EXPECT_NE(verify(token.substr(0, cut), rules_for({algorithm})).fault, JwtFault::none) << cut;
    }
  }
}

TEST(Jwt, none_is_never_an_algorithm) {
  for (const std::string_view name : {"none", "None", "NONE", "nOnE", ""}) {
    const std::string head = base64url(R"({"alg":")" + std::string(name) + "\"}") + "." + base64url(R"({"sub":"42"})");
    for (const std::string_view signature : {"", "AAAA"}) {
      EXPECT_EQ(verify(head + "." + std::string(signature), rules_for({kAll.begin(), kAll.end()})).fault,
                JwtFault::algorithm)
          << name;
    }
  }
}

TEST(Jwt, a_public_key_is_no_secret) {
  const Signer& rsa = signer_for(JwtAlgorithm::rs256);
  const std::shared_ptr<const KeySet> keys = set_of(KeySet::from_pem(rsa.pem()));
  // Signed with the text of the public key, which everybody has.
  const std::string forged = Signer(rsa.pem()).token(JwtAlgorithm::hs256, R"({"sub":"victim"})");
  EXPECT_EQ(verify(forged, rules_for({JwtAlgorithm::rs256}), keys).fault, JwtFault::algorithm);
  EXPECT_EQ(verify(forged, rules_for({JwtAlgorithm::rs256, JwtAlgorithm::hs256}), keys).fault, JwtFault::key);
  EXPECT_FALSE(KeySet::from_secret(rsa.pem()));
}

TEST(Jwt, a_signature_of_zeros_is_no_signature) {
  for (const JwtAlgorithm algorithm : {JwtAlgorithm::es256, JwtAlgorithm::es384, JwtAlgorithm::es512}) {
    const std::string head =
        base64url(R"({"alg":")" + std::string(name_of(algorithm)) + "\"}") + "." + base64url(R"({"sub":"42"})");
    for (const std::size_t size : {0U, 1U, 64U, 96U, 132U, 200U}) {
      const std::string token = head + "." + base64url(std::string(size, '\0'));
      EXPECT_EQ(verify(token, rules_for({algorithm})).fault, JwtFault::signature) << size;
    }
  }
}

TEST(Jwt, another_key_of_the_same_kind_is_refused) {
  const std::string token = other_rsa().token(JwtAlgorithm::rs256, R"({"sub":"42"})");
  EXPECT_EQ(verify(token, rules_for({JwtAlgorithm::rs256})).fault, JwtFault::signature);
}

TEST(Jwt, the_key_that_a_token_names_must_be_there) {
  const Signer& one = signer_for(JwtAlgorithm::rs256);
  const auto keys = set_of(
      KeySet::from_jwks(R"({"keys":[{"kid":"one",)" + one.jwk() + R"(},{"kid":"two",)" + other_rsa().jwk() + "}]}"));
  const auto token = [](const Signer& signer, std::string_view kid) {
    return signer.token(JwtAlgorithm::rs256, R"({"alg":"RS256","kid":)" + std::string(kid) + "}", R"({"sub":"42"})");
  };
  const JwtRules rules = rules_for({JwtAlgorithm::rs256});
  EXPECT_EQ(verify(token(one, "\"one\""), rules, keys).fault, JwtFault::none);
  EXPECT_EQ(verify(token(other_rsa(), "\"two\""), rules, keys).fault, JwtFault::none);
  EXPECT_EQ(verify(token(one, "\"two\""), rules, keys).fault, JwtFault::signature);
  EXPECT_EQ(verify(token(one, "\"three\""), rules, keys).fault, JwtFault::key);
  EXPECT_EQ(verify(token(one, "1"), rules, keys).fault, JwtFault::malformed);
  EXPECT_EQ(verify(one.token(JwtAlgorithm::rs256, R"({"sub":"42"})"), rules, keys).fault, JwtFault::none);
}

TEST(Jwt, a_key_may_be_bound_to_one_algorithm) {
  const Signer& rsa = signer_for(JwtAlgorithm::rs256);
  const auto keys = set_of(KeySet::from_jwks(R"({"keys":[{"alg":"RS256",)" + rsa.jwk() + "}]}"));
  const JwtRules rules = rules_for({JwtAlgorithm::rs256, JwtAlgorithm::rs512});
  EXPECT_EQ(verify(rsa.token(JwtAlgorithm::rs256, "{}"), rules, keys).fault, JwtFault::none);
  EXPECT_EQ(verify(rsa.token(JwtAlgorithm::rs512, "{}"), rules, keys).fault, JwtFault::key);
}

Jwt of_claims(std::string_view payload, const JwtRules& rules, std::int64_t utc = kNow) {
  return verify(signer_for(JwtAlgorithm::hs256).token(JwtAlgorithm::hs256, payload), rules, all_keys(), utc);
}

TEST(Jwt, times_are_kept_with_leeway) {
  JwtRules rules = rules_for({JwtAlgorithm::hs256});
  rules.leeway = std::chrono::seconds(30);
  const std::string_view expires = R"({"exp":1767225600})";
  EXPECT_EQ(of_claims(expires, rules, kNow + 30 * kSecond - 1).fault, JwtFault::none);
  EXPECT_EQ(of_claims(expires, rules, kNow + 30 * kSecond).fault, JwtFault::expired);
  EXPECT_EQ(of_claims(expires, rules).valid_until, kNow + 30 * kSecond);
  const std::string_view begins = R"({"nbf":1767225600})";
  EXPECT_EQ(of_claims(begins, rules, kNow - 30 * kSecond).fault, JwtFault::none);
  EXPECT_EQ(of_claims(begins, rules, kNow - 30 * kSecond - 1).fault, JwtFault::too_early);
  EXPECT_EQ(of_claims(R"({"exp":1767225570.5})", rules).fault, JwtFault::none);
  EXPECT_EQ(of_claims(R"({"exp":1767225569.5})", rules).fault, JwtFault::expired);
}

TEST(Jwt, odd_times_do_no_harm) {
  const JwtRules rules = rules_for({JwtAlgorithm::hs256});
  for (const std::string_view good : {"99999999999", "9223372036854775807", "18446744073709551615", "1e300"}) {
    EXPECT_EQ(of_claims(R"({"exp":)" + std::string(good) + "}", rules).fault, JwtFault::none) << good;
    EXPECT_EQ(of_claims(R"({"nbf":)" + std::string(good) + "}", rules).fault, JwtFault::too_early) << good;
  }
  for (const std::string_view past : {"0", "-1", "-9223372036854775808", "-1e300", "0.1"}) {
    EXPECT_EQ(of_claims(R"({"exp":)" + std::string(past) + "}", rules).fault, JwtFault::expired) << past;
  }
  for (const std::string_view odd : {"\"1767225600\"", "null", "true", "[1767225600]", "{}", "1e400", "-1e400"}) {
    EXPECT_EQ(of_claims(R"({"exp":)" + std::string(odd) + "}", rules).fault, JwtFault::malformed) << odd;
    EXPECT_EQ(of_claims(R"({"nbf":)" + std::string(odd) + "}", rules).fault, JwtFault::malformed) << odd;
  }
}

TEST(Jwt, issuer_and_audience_are_those_wanted) {
  JwtRules rules = rules_for({JwtAlgorithm::hs256});
  rules.issuers = {"https://a", "https://b"};
  EXPECT_EQ(of_claims(R"({"iss":"https://b"})", rules).fault, JwtFault::none);
  for (const std::string_view other : {R"({"iss":"https://c"})", R"({"iss":["https://a"]})", R"({"iss":null})", "{}"}) {
    EXPECT_EQ(of_claims(other, rules).fault, JwtFault::issuer) << other;
  }
  rules.issuers.clear();
  rules.audiences = {"api", "web"};
  EXPECT_EQ(of_claims(R"({"aud":"api"})", rules).fault, JwtFault::none);
  EXPECT_EQ(of_claims(R"({"aud":["other","web"]})", rules).fault, JwtFault::none);
  for (const std::string_view other : {R"({"aud":"ap"})", R"({"aud":["other",1]})", R"({"aud":{}})", "{}"}) {
    EXPECT_EQ(of_claims(other, rules).fault, JwtFault::audience) << other;
  }
}

TEST(Jwt, claims_are_texts) {
  JwtRules rules = rules_for({JwtAlgorithm::hs256});
  rules.claims = {{"sub"}, {"realm", "user"}, {"https://x.example/id"}};
  const auto first = [&](std::string_view value) {
    return of_claims(R"({"sub":)" + std::string(value) + "}", rules).claims[0].value_or("-");
  };
  EXPECT_EQ(first("\"42\""), "42");
  EXPECT_EQ(first("42"), "42");
  EXPECT_EQ(first("42.0"), "42");
  EXPECT_EQ(first("4.2e1"), "42");
  EXPECT_EQ(first("-7"), "-7");
  EXPECT_EQ(first("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(first("0.5"), "0.5");
  EXPECT_EQ(first("true"), "true");
  // What is not held exactly would be the number of another, too.
  for (const std::string_view none : {"18446744073709551617", "100000000000000000000000000001", "-9223372036854775809",
                                      "9007199254740993.0", "1e400", "-1e300"}) {
    EXPECT_EQ(first(none), "-") << none;
  }
  for (const std::string_view none : {"\"\"", "null", "[]", "{}", "[\"42\"]"}) EXPECT_EQ(first(none), "-") << none;
  const Jwt nested = of_claims(R"({"realm":{"user":"x"},"https://x.example/id":9})", rules);
  EXPECT_FALSE(nested.claims[0]);
  EXPECT_EQ(nested.claims[1], "x");
  EXPECT_EQ(nested.claims[2], "9");
  EXPECT_FALSE(of_claims(R"({"realm":"user"})", rules).claims[1]);
  EXPECT_FALSE(of_claims(R"({"realm.user":"x"})", rules).claims[1]);
}

TEST(Jwt, malformed_tokens_are_refused) {
  const Signer& signer = signer_for(JwtAlgorithm::hs256);
  const JwtRules rules = rules_for({JwtAlgorithm::hs256});
  const std::string good = signer.token(JwtAlgorithm::hs256, R"({"sub":"42"})");
  std::vector<std::string> bad{"",
                               ".",
                               "..",
                               "...",
                               "a.b.c",
                               good + ".",
                               "." + good,
                               good + "=",
                               " " + good,
                               std::string(kMaxToken + 1, 'a'),
                               std::string("\0.\0.\0", 5)};
  for (const std::string_view header :
       {"", "{", "[]", "1", "{}", R"({"alg":1})", R"({"alg":null})", R"({"alg":"HS256","crit":["exp"]})",
        R"({"alg":"HS256","crit":[]})", "{\"alg\":\"HS256\",\"x\":\"\xff\"}"}) {
    bad.push_back(signer.token(JwtAlgorithm::hs256, header, R"({"sub":"42"})"));
  }
  for (const std::string_view payload : {"", "[]", "\"sub\"", "{", "{\"sub\":\"42\"} x", "null"}) {
    bad.push_back(signer.token(JwtAlgorithm::hs256, payload));
  }
  std::string deep = R"({"sub":"42","a":)";
  for (int i = 0; i < 2'000; ++i) deep += '[';
  bad.push_back(signer.token(JwtAlgorithm::hs256, deep));
  for (const std::string& token : bad) {
    EXPECT_EQ(verify(token, rules).fault, JwtFault::malformed) << token.substr(0, 80);
  }
}

TEST(Jwt, one_spelling_of_base64url_alone) {
  const std::string good = signer_for(JwtAlgorithm::hs256).token(JwtAlgorithm::hs256, R"({"sub":"42"})");
  // 32 bytes leave two bits over in the last character.
  std::string other = good;
  other.back() = static_cast<char>(other.back() == 'Z' ? 'Y' : other.back() + 1);
  EXPECT_NE(verify(other, rules_for({JwtAlgorithm::hs256})).fault, JwtFault::none);
}

TEST(Jwt, random_bytes_never_pass) {
  std::mt19937_64 random(7);
  const JwtRules rules = rules_for({kAll.begin(), kAll.end()});
  for (int i = 0; i < 300; ++i) {
    std::string token;
    for (std::uint64_t n = random() % 200; n > 0; --n) token += static_cast<char>(random());
    EXPECT_NE(verify(token, rules).fault, JwtFault::none);
    EXPECT_NE(verify(base64url(token) + "." + base64url(token) + "." + base64url(token), rules).fault, JwtFault::none);
  }
}

std::string problem_of(const Result<std::shared_ptr<const KeySet>>& keys) {
  return keys ? std::string("none") : keys.error().message;
}

TEST(KeySet, tells_what_is_wrong_with_a_jwk_set) {
  const auto problem = [](std::string_view text) { return problem_of(KeySet::from_jwks(text)); };
  EXPECT_TRUE(problem("x").starts_with("this is no JSON"));
  EXPECT_EQ(problem("[]"), R"(expected a JWK Set: {"keys": [...]})");
  EXPECT_EQ(problem(R"({"keys":[]})"), "no key for signatures among 0");
  EXPECT_EQ(problem(R"({"keys":[1]})"), "keys[0]: expected an object");
  EXPECT_EQ(problem(R"({"keys":[{"kty":"RSA","e":"AQAB"}]})"), "keys[0]: the member `n` is missing or is no base64url");
  EXPECT_EQ(problem(R"({"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]})"),
            "keys[0]: an RSA key needs from 2048 to 16384 bits, found 17");
  EXPECT_EQ(problem(R"({"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]})"),
            "keys[0]: the member `x` is missing or is no base64url");
  const std::string zeros = base64url(std::string(32, '\1'));
  EXPECT_EQ(problem(R"({"keys":[{"kty":"EC","crv":"P-256","x":")" + zeros + R"(","y":")" + zeros + R"("}]})"),
            "keys[0]: its numbers are no key");
  EXPECT_EQ(problem(R"({"keys":[{"alg":"ES256",)" + signer_for(JwtAlgorithm::rs256).jwk() + "}]}"),
            "keys[0]: its `alg` ES256 is not one of a key of this kind");
  EXPECT_EQ(problem(R"({"keys":[{"use":"enc",)" + signer_for(JwtAlgorithm::rs256).jwk() + "}]}"),
            "no key for signatures among 1");
}

std::string rsa_jwk(std::string_view exponent) {
  return R"({"keys":[{"kty":"RSA","kid":"k1","n":")" + base64url(std::string(256, '\xC5')) + R"(","e":")" +
         base64url(exponent) + R"("}]})";
}

TEST(KeySet, an_exponent_by_which_anybody_signs_is_refused) {
  const auto problem = [](std::string_view exponent) { return problem_of(KeySet::from_jwks(rsa_jwk(exponent))); };
  EXPECT_EQ(problem("\x03"), "none");
  EXPECT_EQ(problem(std::string_view("\1\0\1", 3)), "none");
  EXPECT_EQ(problem("\x01"), "keys[0]: an RSA key needs an odd public exponent from 3, found 1 (kid 'k1')");
  EXPECT_EQ(problem(std::string_view("\0\0\1", 3)),
            "keys[0]: an RSA key needs an odd public exponent from 3, found 1 (kid 'k1')");
  EXPECT_EQ(problem(std::string_view("\1\0", 2)),
            "keys[0]: an RSA key needs an odd public exponent from 3, found 256 (kid 'k1')");
  EXPECT_NE(problem(std::string_view("\0", 1)), "none");
}

TEST(KeySet, a_private_key_is_refused) {
  for (const JwtAlgorithm algorithm : {JwtAlgorithm::rs256, JwtAlgorithm::es256, JwtAlgorithm::eddsa}) {
    EXPECT_EQ(problem_of(KeySet::from_jwks(R"({"keys":[{"d":"AA",)" + signer_for(algorithm).jwk() + "}]}")),
              "keys[0]: this is a private key (`d`), which belongs to whoever signs the tokens; expected the public "
              "members alone");
  }
  // Of one that is passed over, nothing is looked at.
  EXPECT_EQ(problem_of(KeySet::from_jwks(R"({"keys":[{"d":"AA","use":"enc",)" + signer_for(JwtAlgorithm::rs256).jwk() +
                                         "},{" + signer_for(JwtAlgorithm::es256).jwk() + "}]}")),
            "none");
}

TEST(KeySet, passes_over_keys_for_other_things) {
  const std::string rsa = signer_for(JwtAlgorithm::rs256).jwk();
  const auto keys = set_of(KeySet::from_jwks(
      R"({"keys":[{"kty":"OKP","crv":"X25519","x":"AA"},{"kty":"new"},{"kty":"EC","crv":"secp256k1"},{"use":"enc",)" +
      rsa + R"(},{"key_ops":["encrypt"],)" + rsa + R"(},{"alg":"RSA-OAEP",)" + rsa +
      R"(},{"use":"sig","key_ops":["verify"],)" + rsa + "}]}"));
  EXPECT_EQ(keys->keys().size(), 1U);
}

TEST(KeySet, tells_what_is_wrong_with_a_pem_file) {
  const auto problem = [](std::string_view text) { return problem_of(KeySet::from_pem(text)); };
  EXPECT_TRUE(problem("").starts_with("no key found"));
  EXPECT_TRUE(
      problem("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").starts_with("this is a private key"));
  EXPECT_EQ(problem("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"),
            "the block 'PUBLIC KEY' cannot be read: it is damaged");
  EXPECT_EQ(problem("-----BEGIN DH PARAMETERS-----\nAAAA\n-----END DH PARAMETERS-----\n"),
            "expected a PUBLIC KEY or a CERTIFICATE, found a block 'DH PARAMETERS'");
  const Signer weak(KeyPointer(EVP_RSA_gen(1024)));
  EXPECT_EQ(problem(weak.pem()), "an RSA key needs from 2048 to 16384 bits, found 1024");
  EXPECT_EQ(problem(signer_for(JwtAlgorithm::es384).pem() + weak.pem()),
            "key 2: an RSA key needs from 2048 to 16384 bits, found 1024");
  const Signer odd(KeyPointer(EVP_EC_gen("secp256k1")));
  EXPECT_EQ(problem(odd.pem()), "an elliptic curve key must be on P-256, P-384 or P-521, found secp256k1");
  EXPECT_EQ(set_of(KeySet::from_pem(signer_for(JwtAlgorithm::es384).pem() + signer_for(JwtAlgorithm::eddsa).pem()))
                ->keys()
                .size(),
            2U);
}

TEST(KeySet, a_secret_is_its_text_without_the_line_end) {
  EXPECT_EQ(set_of(KeySet::from_secret("abc\r\n"))->keys()[0].secret_size(), 3U);
  EXPECT_EQ(set_of(KeySet::from_secret("a\nc"))->keys()[0].secret_size(), 3U);
  EXPECT_EQ(problem_of(KeySet::from_secret("\n")), "the secret is empty");
}

}  // namespace
}  // namespace sluice::identity
