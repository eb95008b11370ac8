// Scripts for servers that check them by their text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::store::redis {

/// The same script with every key argument written as a literal: each `redis.call('COMMAND', KEYS[expression], …)` (or
/// pcall) becomes a call of a function that has one line for each number of a key,
///     if i == 1 then return redis.call('COMMAND', KEYS[1], …) end
/// up to `most_keys`; a greater number is an error of the script. Equal commands share a function. Precondition: code
/// that names keys in no other way and has no comments.
[[nodiscard]] std::string literal_text(std::string_view code, std::size_t most_keys);

}  // namespace sluice::store::redis
