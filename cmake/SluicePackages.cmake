# What the daemon's package holds beside the program, and the packages themselves:
#   cmake --build build/release --target package_parts && (cd build/release && cpack)
# gives sluice_VERSION_ARCH.deb and libsluice-dev_VERSION_ARCH.deb.
# Manual pages are made of docs/ by lowdown, completions by the program itself.
include(GNUInstallDirs)
set(parts ${PROJECT_BINARY_DIR}/packaging)
file(MAKE_DIRECTORY ${parts})

find_program(LOWDOWN lowdown)
function(sluice_manual_page document name section summary)
  set(page ${parts}/${name}.${section})
  add_custom_command(
    OUTPUT ${page}.gz
    COMMAND ${PROJECT_SOURCE_DIR}/packaging/man/make_page ${document} ${name} ${section} ${PROJECT_VERSION} ${summary} > ${page}
    COMMAND gzip -9nf ${page}
    DEPENDS ${document} ${PROJECT_SOURCE_DIR}/packaging/man/make_page
    VERBATIM)
  set_property(GLOBAL APPEND PROPERTY sluice_manual_pages ${page}.gz)
  install(FILES ${page}.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT sluice_daemon)
endfunction()
if(LOWDOWN)
  sluice_manual_page(${PROJECT_SOURCE_DIR}/docs/cli.md sluice 1 "rate limiter: daemon and command line")
  sluice_manual_page(${PROJECT_SOURCE_DIR}/docs/configuration.md sluice.yaml 5 "settings of the rate limiter sluice")
  sluice_manual_page(${PROJECT_SOURCE_DIR}/docs/policy.md sluice-policy 5 "what the rate limiter sluice limits")
  get_property(pages GLOBAL PROPERTY sluice_manual_pages)
  add_custom_target(manual_pages ALL DEPENDS ${pages})
endif()

# Their places are given from /usr; beside another prefix they go where the shells look by XDG_DATA_DIRS.
foreach(row IN ITEMS "bash;bash-completion/completions;sluice" "zsh;zsh/vendor-completions;_sluice" "fish;fish/vendor_completions.d;sluice.fish")
  list(GET row 0 shell)
  list(GET row 1 directory)
  list(GET row 2 name)
  add_custom_command(
    OUTPUT ${parts}/${shell}/${name}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${parts}/${shell}
    COMMAND sluice completion ${shell} > ${parts}/${shell}/${name}
    DEPENDS sluice
    VERBATIM)
  list(APPEND completions ${parts}/${shell}/${name})
  install(FILES ${parts}/${shell}/${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/${directory} COMPONENT sluice_daemon)
endforeach()
add_custom_target(completions ALL DEPENDS ${completions})

# It names the program's place, which the prefix of the installation decides.
install(CODE "
  set(program_dir \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  configure_file(${PROJECT_SOURCE_DIR}/packaging/systemd/sluice.service.in ${parts}/sluice.service @ONLY)" COMPONENT sluice_daemon)
install(FILES ${parts}/sluice.service DESTINATION lib/systemd/system COMPONENT sluice_daemon)
# Below the prefix as an example, as nobody's files in /etc may be overwritten; the package puts it there.
install(FILES ${PROJECT_SOURCE_DIR}/packaging/etc/sluice.yaml DESTINATION ${CMAKE_INSTALL_DATADIR}/sluice COMPONENT sluice_daemon)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/etc/example.yaml DESTINATION ${CMAKE_INSTALL_DATADIR}/sluice/policies COMPONENT sluice_daemon)

# What is in Debian's packages alone, where Debian's tools look for it: /etc is not for `cmake --install`.
add_custom_command(
  OUTPUT ${parts}/changelog.gz
  COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/CHANGELOG.md > ${parts}/changelog.gz
  DEPENDS ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  VERBATIM)
add_custom_target(changelog ALL DEPENDS ${parts}/changelog.gz)
# All that the packages hold, without tests and benchmarks; then: cd build/release && cpack
add_custom_target(package_parts DEPENDS ${completions} ${pages} ${parts}/changelog.gz)
add_dependencies(package_parts sluice sluice_core)
foreach(name IN ITEMS limiter queues)
  if(TARGET sluice_${name})
    add_dependencies(package_parts sluice_${name})
  endif()
endforeach()
set(debian ${PROJECT_SOURCE_DIR}/packaging/debian)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/etc/sluice.yaml DESTINATION /etc/sluice COMPONENT debian_daemon EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/etc/example.yaml DESTINATION /etc/sluice/policies COMPONENT debian_daemon EXCLUDE_FROM_ALL)
install(FILES ${parts}/changelog.gz ${debian}/copyright DESTINATION share/doc/sluice COMPONENT debian_daemon EXCLUDE_FROM_ALL)
install(FILES ${parts}/changelog.gz ${debian}/copyright DESTINATION share/doc/libsluice-dev COMPONENT debian_development EXCLUDE_FROM_ALL)

set(CPACK_PACKAGE_NAME sluice)
set(CPACK_PACKAGE_CONTACT "The authors of Sluice <sluice@localhost>")
set(CPACK_GENERATOR DEB)
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL sluice_daemon debian_daemon sluice_library sluice_development debian_development)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

set(CPACK_DEBIAN_DAEMON_PACKAGE_NAME sluice)
set(CPACK_DEBIAN_DAEMON_DESCRIPTION
    "rate limiter: daemon and command line\n\
Answers Envoy, nginx, HAProxy, Caddy, Traefik and programs over gRPC, HTTP and\n\
the Redis protocol whether a request may pass. Limits are exact; counters are\n\
in memory, or in a Redis that any number of daemons share.")
set(CPACK_DEBIAN_DAEMON_PACKAGE_SECTION net)
set(CPACK_DEBIAN_DAEMON_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DAEMON_PACKAGE_DEPENDS "adduser, ca-certificates, tzdata")
set(CPACK_DEBIAN_DAEMON_PACKAGE_SUGGESTS "redis-server")
set(CPACK_DEBIAN_DAEMON_PACKAGE_CONTROL_EXTRA ${debian}/postinst ${debian}/prerm ${debian}/postrm ${debian}/conffiles)
set(CPACK_DEBIAN_DAEMON_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libsluice-dev)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
    "rate limiter: library for C++ programs\n\
Limiters in process, by key, and by policy, in memory or in Redis; queues of\n\
requests beyond them: headers, libraries, CMake package and pkg-config files.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "libboost1.81-dev | libboost-dev, libssl-dev, libyaml-cpp-dev, libfmt-dev, libhiredis-dev, libxxhash-dev, librdkafka-dev, librabbitmq-dev")

include(CPack)
cpack_add_component_group(daemon)
cpack_add_component_group(development)
cpack_add_component(sluice_daemon GROUP daemon)
cpack_add_component(debian_daemon GROUP daemon)
cpack_add_component(sluice_library GROUP development)
cpack_add_component(sluice_development GROUP development)
cpack_add_component(debian_development GROUP development)
