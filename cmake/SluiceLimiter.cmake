# The second installed library, sluice::limiter: limits by policy, in memory or shared through Redis, inside a program. It holds all
# that it needs of this project, also of sluice::core, so either can be used without the other.

# Its headers; all others are those of sluice::core.
set(SLUICE_LIMITER_HEADERS "/sluice/(limiter|http_answer|http_limits|asio/async_check|adapter/[a-z_]+)\\.h$")

# Adds to SLUICE_LIMITER_PARTS and SLUICE_LIMITER_PACKAGES what TARGET is made of: this project's libraries, and others.
function(sluice_collect_limiter_part target)
  get_target_property(aliased ${target} ALIASED_TARGET)
  if(aliased)
    set(target ${aliased})
  endif()
  get_property(parts GLOBAL PROPERTY SLUICE_LIMITER_PARTS)
  if(target IN_LIST parts)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY SLUICE_LIMITER_PARTS ${target})
  get_target_property(libraries ${target} LINK_LIBRARIES)
  foreach(library IN LISTS libraries)
    if(library MATCHES "^sluice(::|_)")
      sluice_collect_limiter_part(${library})
    elseif(library AND NOT library MATCHES "^\\$<")
      set_property(GLOBAL APPEND PROPERTY SLUICE_LIMITER_PACKAGES ${library})
    endif()
  endforeach()
endfunction()

# sluice_add_limiter(): makes sluice::limiter, static or shared as BUILD_SHARED_LIBS says. After all parts.
function(sluice_add_limiter)
  sluice_collect_limiter_part(sluice::http_limits)
  get_property(parts GLOBAL PROPERTY SLUICE_LIMITER_PARTS)
  get_property(packages GLOBAL PROPERTY SLUICE_LIMITER_PACKAGES)
  list(REMOVE_DUPLICATES packages)
  # Headers alone are not needed by those who link.
  list(REMOVE_ITEM packages Boost::headers)
  get_property(core_parts GLOBAL PROPERTY SLUICE_CORE_PARTS)
  set(objects)
  foreach(part IN LISTS parts)
    if(NOT part IN_LIST core_parts)
      sluice_public_part(${part})
    endif()
    list(APPEND objects $<TARGET_OBJECTS:${part}>)
  endforeach()
  include(${PROJECT_SOURCE_DIR}/cmake/sluice-limiter-packages.cmake)

  add_library(sluice_limiter ${objects})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/sluice/*.h")
  list(FILTER headers INCLUDE REGEX "${SLUICE_LIMITER_HEADERS}")
  target_sources(sluice_limiter PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${headers})
  target_link_libraries(sluice_limiter PRIVATE ${packages})
  sluice_public_library(sluice_limiter limiter sluice-limiter libsluice-limiter.map)
endfunction()
