// JSON Web Key Sets → KeySet.
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "identity/base64url.h"
#include "identity/openssl_owner.h"
#include "identity/verification_key.h"

namespace sluice::identity {
namespace {

namespace json = boost::json;

using Number = OpenSslOwner<BIGNUM, BN_free>;
using Parameters = OpenSslOwner<OSSL_PARAM, OSSL_PARAM_free>;
using Builder = OpenSslOwner<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>;
using KeyContext = OpenSslOwner<EVP_PKEY_CTX, EVP_PKEY_CTX_free>;

std::string_view text_of(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  const json::string* const text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string_view{} : std::string_view(text->data(), text->size());
}

/// A member in base64url. Nothing when it is absent or is none.
std::optional<std::string> bytes_of(const json::object& object, std::string_view name) {
  std::string bytes;
  const std::string_view text = text_of(object, name);
  if (text.empty() || !decode_base64url(text, bytes)) return std::nullopt;
  return bytes;
}

Error damaged(std::string_view member) {
  return Error{"the member `" + std::string(member) + "` is missing or is no base64url"};
}

const unsigned char* data_of(const std::string& bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

KeyPointer make_key(const char* type, OSSL_PARAM_BLD* builder) {
  const Parameters parameters(OSSL_PARAM_BLD_to_param(builder));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (parameters == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1) {
    return nullptr;
  }
  return KeyPointer(key);
}

Result<KeyPointer> read_rsa(const json::object& object) {
  const auto modulus = bytes_of(object, "n");
  if (!modulus) return damaged("n");
  const auto exponent = bytes_of(object, "e");
  if (!exponent) return damaged("e");
  const Number n(BN_bin2bn(data_of(*modulus), static_cast<int>(modulus->size()), nullptr));
  const Number e(BN_bin2bn(data_of(*exponent), static_cast<int>(exponent->size()), nullptr));
  const Builder builder(OSSL_PARAM_BLD_new());
  if (builder == nullptr || OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get()) != 1) {
    return KeyPointer();
  }
  return make_key("RSA", builder.get());
}

struct Curve {
  std::string_view name;
  const char* group;
  std::size_t bytes;  ///< of a coordinate
};
constexpr std::array<Curve, 3> kCurves{{{"P-256", "P-256", 32}, {"P-384", "P-384", 48}, {"P-521", "P-521", 66}}};

/// An empty pointer: the point is not on the curve.
Result<KeyPointer> read_ec(const json::object& object, const Curve& curve) {
  std::string point(1, '\x04');
  for (const std::string_view name : {"x", "y"}) {
    const auto coordinate = bytes_of(object, name);
    if (!coordinate || coordinate->size() != curve.bytes) return damaged(name);
    point += *coordinate;
  }
  const Builder builder(OSSL_PARAM_BLD_new());
  if (builder == nullptr ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, curve.group, 0) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()) != 1) {
    return KeyPointer();
  }
  return make_key("EC", builder.get());
}

Result<KeyPointer> read_edwards(const json::object& object, int type) {
  const auto x = bytes_of(object, "x");
  if (!x) return damaged("x");
  return KeyPointer(EVP_PKEY_new_raw_public_key(type, nullptr, data_of(*x), x->size()));
}

/// A public key; nothing: of a kind that is not known here.
std::optional<Result<KeyPointer>> read_public(const json::object& object, std::string_view type) {
  const std::string_view curve = text_of(object, "crv");
  if (type == "RSA") return read_rsa(object);
  if (type == "EC") {
    const auto* const known = std::ranges::find(kCurves, curve, &Curve::name);
    if (known == kCurves.end()) return std::nullopt;
    return read_ec(object, *known);
  }
  if (type != "OKP") return std::nullopt;
  if (curve == "Ed25519") return read_edwards(object, EVP_PKEY_ED25519);
  if (curve == "Ed448") return read_edwards(object, EVP_PKEY_ED448);
  return std::nullopt;
}

bool is_for_signatures(const json::object& object) {
  const std::string_view use = text_of(object, "use");
  if (!use.empty() && use != "sig") return false;
  const json::value* const operations = object.if_contains("key_ops");
  const json::array* const list = operations == nullptr ? nullptr : operations->if_array();
  if (list == nullptr) return true;
  return std::ranges::any_of(*list, [](const json::value& value) {
    const json::string* const text = value.if_string();
    return text != nullptr && *text == "verify";
  });
}

/// Nothing: to be passed over.
std::optional<Result<VerificationKey>> read_key(const json::object& object) {
  if (!is_for_signatures(object)) return std::nullopt;
  const std::string_view type = text_of(object, "kty");
  if (type == "oct") {
    auto secret = bytes_of(object, "k");
    if (!secret || secret->empty()) return damaged("k");
    return VerificationKey::from_secret(*std::move(secret));
  }
  std::optional<Result<KeyPointer>> pointer = read_public(object, type);
  if (!pointer) return std::nullopt;
  if (object.contains("d")) {
    return Error{
        "this is a private key (`d`), which belongs to whoever signs the tokens; expected the public members alone"};
  }
  if (!*pointer) return pointer->error();
  if (**pointer == nullptr) return Error{"its numbers are no key"};
  return VerificationKey::from_public(*std::move(*pointer));
}

}  // namespace

Result<std::shared_ptr<const KeySet>> KeySet::from_jwks(std::string_view text) {
  boost::system::error_code problem;
  const json::value document = json::parse(json::string_view(text.data(), text.size()), problem);
  if (problem) return Error{"this is no JSON: " + problem.message()};
  const json::object* const set = document.if_object();
  const json::value* const member = set == nullptr ? nullptr : set->if_contains("keys");
  const json::array* const list = member == nullptr ? nullptr : member->if_array();
  if (list == nullptr) return Error{R"(expected a JWK Set: {"keys": [...]})"};
  std::vector<VerificationKey> keys;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string place = "keys[" + std::to_string(i) + "]: ";
    const json::object* const object = (*list)[i].if_object();
    if (object == nullptr) return Error{place + "expected an object"};
    std::optional<Result<VerificationKey>> key = read_key(*object);
    ERR_clear_error();
    if (!key) continue;
    if (!*key) {
      constexpr std::size_t longest = 64;
      const std::string_view id = text_of(*object, "kid").substr(0, longest);
      return Error{place + key->error().message + (id.empty() ? "" : " (kid '" + std::string(id) + "')")};
    }
    if (const std::string_view name = text_of(*object, "alg"); !name.empty()) {
      const auto algorithm = find_algorithm(name);
      if (!algorithm) continue;  // for something that is not done here
      if (kind_for(*algorithm) != (*key)->kind()) {
        return Error{place + "its `alg` " + std::string(name) + " is not one of a key of this kind"};
      }
      (*key)->restrict_to(*algorithm);
    }
    (*key)->set_id(std::string(text_of(*object, "kid")));
    if (keys.size() == kMostKeys) return Error{"more than " + std::to_string(kMostKeys) + " keys"};
    keys.push_back(*std::move(*key));
  }
  if (keys.empty()) return Error{"no key for signatures among " + std::to_string(list->size())};
  return std::make_shared<const KeySet>(std::move(keys));
}

}  // namespace sluice::identity
