// Unsigned integers as proto3 JSON allows them to be written.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::http {

/// The value of a JSON number that is whole and at most `most`, in any notation (5, 5.0, 50e-1); otherwise nothing.
[[nodiscard]] std::optional<std::uint64_t> parse_proto_unsigned(std::string_view token, std::uint64_t most);

}  // namespace sluice::http
