// What OpenSSL has to say about a failure.
#pragma once

#include <string>

namespace sluice::tls {

/// The reason of the first error that OpenSSL has noted on this thread, in words; empty: none. Forgets them all.
[[nodiscard]] std::string take_reason();

}  // namespace sluice::tls
