# The packages that sluice::queues is linked to: when it is built, and by those who link the static one. What is missing is listed in
# sluice_queues_missing.
include("${CMAKE_CURRENT_LIST_DIR}/sluice-limiter-packages.cmake")
set(sluice_queues_missing ${sluice_limiter_missing})
if(PkgConfig_FOUND)
  pkg_check_modules(rdkafka QUIET IMPORTED_TARGET rdkafka)
  pkg_check_modules(rabbitmq QUIET IMPORTED_TARGET librabbitmq)
endif()
foreach(sluice_queues_needed IN ITEMS PkgConfig::rdkafka PkgConfig::rabbitmq)
  if(NOT TARGET ${sluice_queues_needed})
    list(APPEND sluice_queues_missing ${sluice_queues_needed})
  endif()
endforeach()
unset(sluice_queues_needed)
