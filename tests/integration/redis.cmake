# Tests against a redis-server of their own.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

# A part of the servers that tests start, so without what sanitizers would bring into them.
add_library(sluice_clock_ahead MODULE support/clock_ahead.cc)
target_compile_options(sluice_clock_ahead PRIVATE -fno-sanitize=all)
target_link_options(sluice_clock_ahead PRIVATE -fno-sanitize=all)

add_library(redis_test_support STATIC redis_engine.cc redis_secured.cc redis_server.cc redis_sets.cc store_engine.cc
                                      support/documented_acl.cc)
target_include_directories(redis_test_support PUBLIC ${PROJECT_SOURCE_DIR})
target_compile_definitions(redis_test_support PRIVATE SLUICE_CLOCK_AHEAD="$<TARGET_FILE:sluice_clock_ahead>"
                                                      SLUICE_MANUAL="${PROJECT_SOURCE_DIR}/docs/operations.md")
add_dependencies(redis_test_support sluice_clock_ahead)
target_link_libraries(redis_test_support PUBLIC sluice::redis_store sluice_model sluice_test_servers
                                         PRIVATE $<BUILD_INTERFACE:sluice_flags>)

# The script in both styles, the reference model and the script's C++ twin give the same answers.
add_executable(redis_model_replay redis_model_main.cc)
target_link_libraries(redis_model_replay PRIVATE redis_test_support $<BUILD_INTERFACE:sluice_flags>)
set(compare Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/model/compare.py)
foreach(algorithm token_bucket leaky_bucket fixed_window sliding_window sliding_log concurrency multi)
  add_test(NAME redis_model_vectors_${algorithm} COMMAND ${compare} vectors $<TARGET_FILE:redis_model_replay> ${algorithm} --only us)
  add_test(NAME redis_model_literal_${algorithm}
           COMMAND ${compare} vectors $<TARGET_FILE:redis_model_replay> ${algorithm} --only us --literal)
  add_test(NAME redis_model_random_${algorithm}
           COMMAND ${compare} random $<TARGET_FILE:redis_model_replay> --algorithm ${algorithm} --ops 100000 --only us)
  set_tests_properties(redis_model_vectors_${algorithm} redis_model_literal_${algorithm} redis_model_random_${algorithm}
                       PROPERTIES LABELS integration TIMEOUT 300)
endforeach()

# Both stores, all verbs, against the slow model.
sluice_test(store_model_test SOURCES store_model_test.cc LIBS redis_test_support sluice::memory_store LABEL integration)
sluice_test(redis_store_test SOURCES redis_expiry_test.cc redis_store_test.cc
            LIBS redis_test_support sluice::memory_store LABEL integration)
sluice_test(redis_limiter_test SOURCES redis_limiter_test.cc LIBS redis_test_support sluice::shared_limiter LABEL integration)
sluice_test(redis_failure_test SOURCES redis_connection_test.cc redis_failure_test.cc redis_mangled_test.cc
            LIBS redis_test_support sluice::memory_store LABEL integration)
sluice_test(redis_multi_test SOURCES redis_multi_test.cc LIBS redis_test_support LABEL integration)
sluice_test(redis_batch_test SOURCES redis_batch_test.cc LIBS redis_test_support sluice::memory_store LABEL integration)
sluice_test(redis_algorithms_test SOURCES redis_algorithms_test.cc LIBS redis_test_support sluice::memory_store LABEL integration)
sluice_test(redis_secured_test SOURCES redis_reasons_test.cc redis_secured_test.cc LIBS redis_test_support LABEL integration)
