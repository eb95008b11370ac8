// base64url without padding (RFC 7515 appendix C).
#pragma once

#include <string>
#include <string_view>

namespace sluice::identity {

[[nodiscard]] std::string encode_base64url(std::string_view bytes);

/// Replaces `out` by the bytes. False: a character that does not belong, an impossible length, or bits set beyond the
/// last byte; each list of bytes has one spelling.
[[nodiscard]] bool decode_base64url(std::string_view text, std::string& out);

}  // namespace sluice::identity
