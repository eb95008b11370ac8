# The installed library, sluice::core: one library of the objects of all parts that are marked CORE. The parts stay targets of their
# own, for the daemon and the tests; nothing is compiled twice.

# sluice_public_part(TARGET): TARGET's objects become part of an installed library.
function(sluice_public_part target)
  # Only what is marked SLUICE_API is shown.
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # With whole-program optimization, still machine code for those who link the archive with another compiler.
    target_compile_options(${target} PRIVATE $<$<BOOL:$<TARGET_PROPERTY:INTERPROCEDURAL_OPTIMIZATION>>:-ffat-lto-objects>)
  else()
    set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
  endif()
endfunction()

# sluice_core_part(TARGET): the same, of sluice::core.
function(sluice_core_part target)
  set_property(GLOBAL APPEND PROPERTY SLUICE_CORE_OBJECTS $<TARGET_OBJECTS:${target}>)
  set_property(GLOBAL APPEND PROPERTY SLUICE_CORE_PARTS ${target})
  sluice_public_part(${target})
endfunction()

# sluice_public_library(TARGET NAME OUTPUT_NAME MAP): TARGET is installed as sluice::NAME; a shared one shows what the file MAP says.
function(sluice_public_library target name output map)
  add_library(sluice::${name} ALIAS ${target})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:sluice_flags>)
  set_target_properties(
    ${target}
    PROPERTIES LINKER_LANGUAGE CXX
               OUTPUT_NAME ${output}
               EXPORT_NAME ${name}
               VERSION ${PROJECT_VERSION}
               # Until 1.0 every minor version may break the ABI.
               SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  get_target_property(kind ${target} TYPE)
  get_target_property(whole_program ${target} INTERPROCEDURAL_OPTIMIZATION)
  if(kind STREQUAL SHARED_LIBRARY AND CMAKE_SYSTEM_NAME STREQUAL Linux)
    # Hidden visibility leaves what other headers mark as visible, such as instances of the standard library's templates.
    set(script "${PROJECT_SOURCE_DIR}/cmake/${map}")
    target_link_options(${target} PRIVATE "LINKER:--version-script=${script}")
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${script}")
    if(NOT SLUICE_SANITIZE AND NOT SLUICE_FUZZ)
      target_link_options(${target} PRIVATE LINKER:--no-undefined)  # a part is missing
    endif()
  elseif(kind STREQUAL STATIC_LIBRARY AND whole_program AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # The compiler's own form of the code is good for this one version of it only.
    add_custom_command(
      TARGET ${target}
      POST_BUILD
      COMMAND ${CMAKE_OBJCOPY} --wildcard --remove-section=.gnu.lto_* --remove-section=.gnu.debuglto_*
              --strip-symbol=__gnu_lto_slim --strip-symbol=__gnu_lto_v1 $<TARGET_FILE:${target}>
      VERBATIM)
  endif()
endfunction()

# sluice_add_core(): makes sluice::core, static or shared as BUILD_SHARED_LIBS says, and sluice::asio. After all parts.
function(sluice_add_core)
  find_package(Threads REQUIRED)
  get_property(objects GLOBAL PROPERTY SLUICE_CORE_OBJECTS)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/sluice/*.h")
  # Their code is that of sluice::limiter or sluice::queues.
  list(FILTER headers EXCLUDE REGEX "${SLUICE_LIMITER_HEADERS}|${SLUICE_QUEUES_HEADERS}")

  add_library(sluice_core ${objects})
  target_sources(sluice_core PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${headers})
  target_link_libraries(sluice_core PRIVATE Threads::Threads)
  sluice_public_library(sluice_core core sluice libsluice.map)

  # For include/sluice/asio: the same library, and Boost's headers.
  find_package(Boost 1.81 QUIET)
  if(TARGET Boost::headers)
    add_library(sluice_asio INTERFACE)
    add_library(sluice::asio ALIAS sluice_asio)
    target_link_libraries(sluice_asio INTERFACE sluice_core Boost::headers Threads::Threads)
  endif()
endfunction()
