// How a stop treats those who are still asking.
#pragma once

#include <chrono>

namespace sluice {

/// A connection that is to end stays for so long after its last request, as the next may be on its way: a peer that is
/// busy asks again sooner, and the answer can tell it to go, or is followed by the end.
inline constexpr std::chrono::nanoseconds kDrainGrace = std::chrono::milliseconds(500);

}  // namespace sluice
