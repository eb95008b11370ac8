# How targets of this project are made: one place for warnings, sanitizers and include paths.

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

include(SluiceCore)
include(SluiceLimiter)

add_library(sluice_flags INTERFACE)
target_compile_options(sluice_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
                                              -Wold-style-cast -Woverloaded-virtual -Wcast-align)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms on any "text" + std::string when optimizing (GCC bug 105651).
  target_compile_options(sluice_flags INTERFACE -Wno-restrict)
  # And one in string_view::find, seen only when a whole program is optimized at its link.
  target_link_options(sluice_flags INTERFACE -Wno-stringop-overread)
endif()
if(SLUICE_WERROR)
  target_compile_options(sluice_flags INTERFACE -Werror)
endif()
if(SLUICE_SANITIZE)
  # Everything that is linked together, third-party headers included.
  add_compile_options(-fsanitize=${SLUICE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SLUICE_SANITIZE})
endif()

if(SLUICE_FUZZ)
  # The libraries under test must tell the fuzzer which of their branches it has seen.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# sluice_library(NAME [CORE] SOURCES… [PUBLIC libs…] [PRIVATE libs…]): a static library sluice_NAME, alias sluice::NAME. Those marked
# CORE are also parts of the installed library (see SluiceCore.cmake).
function(sluice_library name)
  cmake_parse_arguments(ARG "CORE" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(sluice_${name} STATIC ${ARG_SOURCES})
  add_library(sluice::${name} ALIAS sluice_${name})
  set_target_properties(sluice_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(sluice_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(sluice_${name} PUBLIC ${ARG_PUBLIC} PRIVATE $<BUILD_INTERFACE:sluice_flags> ${ARG_PRIVATE})
  if(ARG_CORE)
    sluice_core_part(sluice_${name})
  endif()
endfunction()

# sluice_test(NAME SOURCES… LIBS… [LABEL unit|model|integration|e2e] [TIMEOUT s]): a GoogleTest program, one ctest entry.
function(sluice_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;LIBS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gmock_main $<BUILD_INTERFACE:sluice_flags>)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE SLUICE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  if(ARG_TIMEOUT GREATER 300)
    # Long ones first, so that none of them runs alone at the end.
    set_tests_properties(${name} PROPERTIES COST ${ARG_TIMEOUT})
  endif()
endfunction()

# sluice_fuzzer(NAME SOURCES… LIBS…): with SLUICE_FUZZ a libFuzzer program; else a program that replays files, run by ctest over
# fuzz/seeds/NAME.
function(sluice_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  set(target fuzz_${name})
  if(SLUICE_FUZZ)
    add_executable(${target} ${ARG_SOURCES})
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${target} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/fuzz/replay_main.cc)
    if(SLUICE_TESTS)
      add_test(NAME ${target} COMMAND ${target} ${PROJECT_SOURCE_DIR}/fuzz/seeds/${name})
      set_tests_properties(${target} PROPERTIES LABELS unit TIMEOUT 120)
    endif()
  endif()
  target_link_libraries(${target} PRIVATE ${ARG_LIBS} $<BUILD_INTERFACE:sluice_flags>)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()
