// Which sanitizer this build runs under: the sanitizers' own needs defeat a few tests.
#pragma once

namespace sluice::test {

#if defined(__has_feature)
#define SLUICE_HAS_FEATURE(name) __has_feature(name)
#else
#define SLUICE_HAS_FEATURE(name) 0
#endif

#if SLUICE_HAS_FEATURE(address_sanitizer) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

#if SLUICE_HAS_FEATURE(thread_sanitizer) || defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#undef SLUICE_HAS_FEATURE

}  // namespace sluice::test
