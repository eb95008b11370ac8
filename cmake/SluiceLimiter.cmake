# More installed libraries. Each holds all that it needs of this project, also of sluice::core, so any can be used without the others:
#   sluice::limiter   limits by policy, in memory or shared through Redis, inside a program
#   sluice::queues    the same, and requests beyond their limit that wait in Kafka, RabbitMQ or memory

# Their headers; all others are those of sluice::core.
set(SLUICE_LIMITER_HEADERS "/sluice/(limiter|http_answer|http_limits|asio/async_check|adapter/(beast|grpc|httplib))\\.h$")
set(SLUICE_QUEUES_HEADERS "/sluice/(queues|http_queues|adapter/[a-z]+_queues)\\.h$")

# Adds to the global properties OF_PARTS and OF_PACKAGES what TARGET is made of: this project's libraries, and others.
function(sluice_collect_part of target)
  get_target_property(aliased ${target} ALIASED_TARGET)
  if(aliased)
    set(target ${aliased})
  endif()
  get_property(parts GLOBAL PROPERTY ${of}_PARTS)
  if(target IN_LIST parts)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY ${of}_PARTS ${target})
  get_target_property(libraries ${target} LINK_LIBRARIES)
  foreach(library IN LISTS libraries)
    if(library MATCHES "^sluice(::|_)")
      sluice_collect_part(${of} ${library})
    elseif(library AND NOT library MATCHES "^\\$<")
      set_property(GLOBAL APPEND PROPERTY ${of}_PACKAGES ${library})
    endif()
  endforeach()
endfunction()

# sluice_add_library_of(NAME ROOT HEADERS): makes sluice::NAME of the part ROOT and all below it, static or shared as BUILD_SHARED_LIBS
# says. HEADERS: a regular expression.
function(sluice_add_library_of name root headers_regex)
  string(TOUPPER "SLUICE_${name}" of)
  sluice_collect_part(${of} ${root})
  get_property(parts GLOBAL PROPERTY ${of}_PARTS)
  get_property(packages GLOBAL PROPERTY ${of}_PACKAGES)
  list(REMOVE_DUPLICATES packages)
  # Headers alone are not needed by those who link.
  list(REMOVE_ITEM packages Boost::headers)
  get_property(public_parts GLOBAL PROPERTY SLUICE_PUBLIC_PARTS)
  get_property(core_parts GLOBAL PROPERTY SLUICE_CORE_PARTS)
  set(objects)
  foreach(part IN LISTS parts)
    if(NOT part IN_LIST core_parts AND NOT part IN_LIST public_parts)
      sluice_public_part(${part})
      set_property(GLOBAL APPEND PROPERTY SLUICE_PUBLIC_PARTS ${part})
    endif()
    list(APPEND objects $<TARGET_OBJECTS:${part}>)
  endforeach()
  include(${PROJECT_SOURCE_DIR}/cmake/sluice-${name}-packages.cmake)

  add_library(sluice_${name} ${objects})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/sluice/*.h")
  list(FILTER headers INCLUDE REGEX "${headers_regex}")
  target_sources(sluice_${name} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${headers})
  target_link_libraries(sluice_${name} PRIVATE ${packages})
  sluice_public_library(sluice_${name} ${name} sluice-${name} libsluice-${name}.map)
endfunction()

function(sluice_add_limiter)
  sluice_add_library_of(limiter sluice::http_limits "${SLUICE_LIMITER_HEADERS}")
endfunction()

function(sluice_add_queues)
  sluice_add_library_of(queues sluice::queue_library "${SLUICE_LIMITER_HEADERS}|${SLUICE_QUEUES_HEADERS}")
endfunction()
