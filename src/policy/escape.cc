#include "policy/escape.h"

#include <openssl/evp.h>

#include <cstdio>
#include <cstdlib>

namespace sluice::policy {

void append_escaped(std::string_view text, const PlainBytes& plain, std::string& out) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (plain.contains(text[i])) continue;
    out.append(text.substr(begin, i - begin));
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::array<char, 3> escaped{'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    out.append(escaped.data(), escaped.size());
    begin = i + 1;
  }
  out.append(text.substr(begin));
}

void append_digest(std::string_view text, std::string& out) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  if (EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) {
    // Only when OpenSSL cannot do SHA-256 at all. Going on would let strangers share a counter.
    std::fputs("sluice: OpenSSL has no SHA-256\n", stderr);
    std::abort();
  }
  out.push_back('#');
  for (std::size_t i = 0; i < 16; ++i) {
    out.push_back(kDigits[digest[i] >> 4U]);
    out.push_back(kDigits[digest[i] & 15U]);
  }
}

}  // namespace sluice::policy
