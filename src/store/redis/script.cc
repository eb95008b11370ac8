#include "store/redis/script.h"

#include <openssl/evp.h>

#include <array>

#include "lua_files.h"

namespace sluice::store::redis {

namespace {

std::string sha1_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    constexpr std::string_view digits = "0123456789abcdef";
    hex += digits[digest[i] >> 4U];
    hex += digits[digest[i] & 15U];
  }
  return hex;
}

}  // namespace

Script make_check_script(std::string_view clock) {
  Script script;
  script.text.append(clock)
      .append(lua::kArithmetic)
      .append(lua::kTokenBucket)
      .append(lua::kFixedWindow)
      .append(lua::kCheck);
  script.sha1 = sha1_hex(script.text);
  return script;
}

const Script& check_script() {
  static const Script kScript = make_check_script(lua::kClockServer);
  return kScript;
}

}  // namespace sluice::store::redis
