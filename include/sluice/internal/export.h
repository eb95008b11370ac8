// What the shared library shows: all else is hidden.
#pragma once

/// On each public class or function that has a body in the library. Classes that are inline as a whole need it only
/// when they are thrown or have virtual functions.
#define SLUICE_API [[gnu::visibility("default")]]

/// On a nested class of such a class that only the library knows.
#define SLUICE_HIDDEN [[gnu::visibility("hidden")]]
