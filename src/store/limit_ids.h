// Small numbers for the identities of limits, the same for the life of the process.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::store {

/// The id of a limit with this identity (see CountedLimit). Equal identities have equal ids, so a reloaded limit keeps
/// its state. Ids are dense and count from 1. Thread-safe. Cost: a lock and a hash; the first time of an identity, an
/// allocation. An identity is never forgotten: build it of what a policy file holds, never of what a request holds.
[[nodiscard]] std::uint32_t limit_id(std::string_view identity);

/// How many identities have an id; the largest id. Thread-safe.
[[nodiscard]] std::uint32_t limit_id_count();

}  // namespace sluice::store
