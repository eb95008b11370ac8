// Boost.JSON itself: the one place in which it is compiled.
#include <boost/json/src.hpp>
