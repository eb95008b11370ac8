// Points at which a test can make something happen, so that a race comes out as the test wants it.
#pragma once

#ifdef SLUICE_SYNC_POINTS
namespace sluice::internal {
// Defined by the test. Called by the thread that has come to the point.
void reach(const char* point);
}  // namespace sluice::internal
#define SLUICE_SYNC_POINT(name) ::sluice::internal::reach(name)
#else
#define SLUICE_SYNC_POINT(name) static_cast<void>(0)
#endif
