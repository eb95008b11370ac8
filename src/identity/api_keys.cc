#include "identity/api_keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/utf8.h"

namespace sluice::identity {
namespace {

constexpr std::string_view kHashed = "sha256:";

std::optional<unsigned> digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  const auto lower = static_cast<char>(c | 0x20);
  if (lower >= 'a' && lower <= 'f') return static_cast<unsigned>(lower - 'a') + 10;
  return std::nullopt;
}

std::optional<ApiKeys::Digest> read_digest(std::string_view text) {
  ApiKeys::Digest digest{};
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const auto high = digit_of(text[2 * i]);
    const auto low = digit_of(text[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    digest[i] = static_cast<unsigned char>(*high << 4U | *low);
  }
  return digest;
}

}  // namespace

ApiKeys::Digest ApiKeys::digest_of(std::string_view key) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  return digest;
}

Result<std::shared_ptr<const ApiKeys>> ApiKeys::parse(std::string_view text, std::string_view noun) {
  text = without_byte_order_mark(text);
  const std::string secret(noun);
  const auto keys = std::make_shared<ApiKeys>();
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = trim(line);
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    // Never the line itself: it may be somebody's key.
    const auto wrong = [&](std::string_view what) {
      return Error{"line " + std::to_string(number) + ": " + std::string(what)};
    };
    const std::size_t space = line.find_first_of(" \t");
    if (space == std::string_view::npos) return wrong("expected a name, a space and a " + secret);
    const std::string_view key = trim(line.substr(space));
    if (key.find_first_of(" \t") != std::string_view::npos) return wrong("a name and a " + secret + " hold no spaces");
    std::optional<Digest> digest = digest_of(key);
    if (key.starts_with(kHashed)) digest = read_digest(key.substr(kHashed.size()));
    if (!digest) return wrong("behind sha256: expected 64 hexadecimal digits");
    keys->keys_.push_back({*digest, std::string(line.substr(0, space))});
  }
  std::vector<Key>& all = keys->keys_;
  std::sort(all.begin(), all.end(), [](const Key& a, const Key& b) { return a.digest < b.digest; });
  const auto twice =
      std::adjacent_find(all.begin(), all.end(), [](const Key& a, const Key& b) { return a.digest == b.digest; });
  if (twice != all.end()) {
    return Error{"the " + secret + "s of " + twice->owner + " and " + std::next(twice)->owner + " are the same"};
  }
  return std::shared_ptr<const ApiKeys>(keys);
}

Result<std::shared_ptr<ApiKeyFile>> open_api_keys(const std::string& path, std::string_view noun) {
  auto file = ApiKeyFile::open(path, [noun](std::string_view text) { return ApiKeys::parse(text, noun); });
  if (file && (*file)->get()->size() == 0) {
    return Error{path + ": no " + std::string(noun) + "s; expected lines of a name, a space and a " +
                 std::string(noun)};
  }
  return file;
}

std::string_view ApiKeys::owner_of(const Digest& digest) const {
  if (keys_.empty()) return {};
  // As many steps for one key as for another.
  std::size_t begin = 0;
  for (std::size_t size = keys_.size(); size > 1;) {
    const std::size_t half = size / 2;
    begin += keys_[begin + half].digest <= digest ? half : 0;
    size -= half;
  }
  const Key& nearest = keys_[begin];
  return CRYPTO_memcmp(nearest.digest.data(), digest.data(), digest.size()) == 0 ? std::string_view(nearest.owner)
                                                                                 : std::string_view{};
}

}  // namespace sluice::identity
