# What `cmake --install` puts where: the library with its headers, its CMake package and its pkg-config file; the daemon.
# A static and a shared build may be installed to one prefix. All of it can be moved afterwards.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

get_target_property(kind sluice_core TYPE)
string(REGEX REPLACE "_LIBRARY$" "" kind "${kind}")
string(TOLOWER "${kind}" kind)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)

install(
  TARGETS sluice_core
  EXPORT sluice-targets
  LIBRARY COMPONENT sluice_library NAMELINK_COMPONENT sluice_development
  ARCHIVE COMPONENT sluice_development
  FILE_SET HEADERS COMPONENT sluice_development)
install(EXPORT sluice-targets FILE sluice-${kind}-targets.cmake NAMESPACE sluice:: DESTINATION ${package_dir}
        COMPONENT sluice_development)

foreach(name IN ITEMS limiter queues)
  if(NOT TARGET sluice_${name})
    continue()
  endif()
  install(
    TARGETS sluice_${name}
    EXPORT sluice-${name}-targets
    LIBRARY COMPONENT sluice_library NAMELINK_COMPONENT sluice_development
    ARCHIVE COMPONENT sluice_development
    FILE_SET HEADERS COMPONENT sluice_development)
  install(EXPORT sluice-${name}-targets FILE sluice-${name}-${kind}-targets.cmake NAMESPACE sluice:: DESTINATION ${package_dir}
          COMPONENT sluice_development)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/sluice-${name}-packages.cmake DESTINATION ${package_dir} COMPONENT sluice_development)
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/sluice-config.cmake.in ${PROJECT_BINARY_DIR}/sluice-config.cmake
                              INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sluice-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sluice-config.cmake ${PROJECT_BINARY_DIR}/sluice-config-version.cmake DESTINATION ${package_dir}
        COMPONENT sluice_development)

# From where the .pc file lies, so that the tree can be moved; CMAKE_INSTALL_*DIR may be absolute, too.
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH up "/root/${pc_dir}" /root)
  string(REGEX REPLACE "/$" "" up "${up}")
  set(pc_prefix "\${pcfiledir}/${up}")
endif()
foreach(dir IN ITEMS LIBDIR INCLUDEDIR)
  set(pc_${dir} "${CMAKE_INSTALL_${dir}}")
  if(NOT IS_ABSOLUTE "${pc_${dir}}")
    string(PREPEND pc_${dir} "\${prefix}/")
  endif()
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/sluice.pc.in ${PROJECT_BINARY_DIR}/sluice.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sluice.pc DESTINATION ${pc_dir} COMPONENT sluice_development)
foreach(name IN ITEMS limiter queues)
  if(TARGET sluice_${name})
    configure_file(${PROJECT_SOURCE_DIR}/cmake/sluice-${name}.pc.in ${PROJECT_BINARY_DIR}/sluice-${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/sluice-${name}.pc DESTINATION ${pc_dir} COMPONENT sluice_development)
  endif()
endforeach()

if(TARGET sluice)
  install(TARGETS sluice RUNTIME COMPONENT sluice_daemon)
  include(SluicePackages)
endif()
