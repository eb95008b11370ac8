# Tests against a Kafka and a RabbitMQ of their own. The jars of Kafka come by tests/integration/brokers/pom.xml: see
# docs/testing.md.
set(SLUICE_KAFKA_LIBS "${PROJECT_SOURCE_DIR}/build/kafka-jars" CACHE PATH
    "Folder with the jars of a Kafka broker; without them tests that need one are skipped")
pkg_check_modules(rdkafka REQUIRED IMPORTED_TARGET rdkafka)
pkg_check_modules(CPP_HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
pkg_check_modules(rabbitmq REQUIRED IMPORTED_TARGET librabbitmq)

add_library(sluice_test_brokers STATIC brokers/kafka_server.cc brokers/rabbit_server.cc)
target_include_directories(sluice_test_brokers PUBLIC ${PROJECT_SOURCE_DIR})
target_compile_definitions(sluice_test_brokers PRIVATE SLUICE_KAFKA_LIBS="${SLUICE_KAFKA_LIBS}")
target_link_libraries(sluice_test_brokers PUBLIC sluice_test_servers
                                          PRIVATE PkgConfig::rdkafka PkgConfig::rabbitmq $<BUILD_INTERFACE:sluice_flags>)

sluice_test(queue_test SOURCES queue_test.cc queue_deliver_test.cc queue_library_test.cc queue_rates_test.cc queue_secured_test.cc
            redis_tickets_test.cc
            LIBS sluice_test_brokers sluice_test_support redis_test_support sluice::queue_library Boost::headers OpenSSL::SSL PkgConfig::CPP_HTTPLIB
            LABEL integration TIMEOUT 600)
# Those on Kafka, and those on RabbitMQ and Redis, beside each other: most of their time they wait.
set_property(TEST queue_test PROPERTY ENVIRONMENT "GTEST_FILTER=-Kafka/*")
add_test(NAME queue_kafka_test COMMAND queue_test "--gtest_filter=Kafka/*")
set_tests_properties(queue_kafka_test PROPERTIES LABELS integration TIMEOUT 600 COST 600)

# Once for all build folders.
find_program(MVN_PROGRAM mvn)
if(MVN_PROGRAM)
  add_test(NAME kafka_jars
           COMMAND sh -c "ls '${SLUICE_KAFKA_LIBS}'/kafka_2* >/dev/null 2>&1 || '${MVN_PROGRAM}' -q -B -f \
'${CMAKE_CURRENT_SOURCE_DIR}/brokers/pom.xml' dependency:copy-dependencies -DincludeScope=runtime \
-DoutputDirectory='${SLUICE_KAFKA_LIBS}'")
  set_tests_properties(kafka_jars PROPERTIES FIXTURES_SETUP kafka_jars LABELS integration TIMEOUT 300)
  set_tests_properties(queue_kafka_test PROPERTIES FIXTURES_REQUIRED kafka_jars)
endif()
