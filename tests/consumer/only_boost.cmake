# A dependency provider (CMAKE_PROJECT_TOP_LEVEL_INCLUDES) that stops at each package which the library may not need.
macro(sluice_only_boost method name)
  if(NOT "${name}" MATCHES "^(Threads|Boost|boost_headers)$")
    message(FATAL_ERROR "The library must be built without ${name}")
  endif()
endmacro()
cmake_language(SET_DEPENDENCY_PROVIDER sluice_only_boost SUPPORTED_METHODS FIND_PACKAGE)
