// The compiler's 128-bit integers, named once so that pedantic warnings stay on everywhere else.
#pragma once

namespace sluice::algorithm {

__extension__ typedef __int128 Int128;            // NOLINT(modernize-use-using)
__extension__ typedef unsigned __int128 Uint128;  // NOLINT(modernize-use-using)

}  // namespace sluice::algorithm
