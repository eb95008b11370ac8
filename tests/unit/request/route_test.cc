#include "request/route.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sluice::request {
namespace {

bool matches(std::string_view pattern, std::string_view target, std::string_view method = "GET") {
  const Result<RoutePattern> parsed = RoutePattern::parse(pattern);
  EXPECT_TRUE(parsed) << pattern;
  PathSegments path;
  path.read(target);
  return parsed && parsed->matches(method, path.segments());
}

std::string path_of(std::string_view target) {
  PathSegments path;
  path.read(target);
  std::string text;
  path.append_to(text);
  return text;
}

TEST(Route, parameters_stand_for_one_segment) {
  EXPECT_TRUE(matches("/articles/{id}", "/articles/7"));
  EXPECT_TRUE(matches("/articles/{id}", "/articles/7?page=2"));
  EXPECT_FALSE(matches("/articles/{id}", "/articles"));
  EXPECT_FALSE(matches("/articles/{id}", "/articles/7/comments"));
  EXPECT_TRUE(matches("/articles/{id}/comments", "/articles/7/comments"));
  EXPECT_FALSE(matches("/articles/{id}", "/Articles/7"));
  EXPECT_TRUE(matches("/", "/"));
  EXPECT_FALSE(matches("/", "/a"));
}

TEST(Route, a_rest_stands_for_any_number) {
  EXPECT_TRUE(matches("/files/{path...}", "/files"));
  EXPECT_TRUE(matches("/files/{path...}", "/files/a/b/c"));
  EXPECT_FALSE(matches("/files/{path...}", "/file/a"));
}

TEST(Route, a_method_may_be_asked_for) {
  EXPECT_TRUE(matches("POST /articles", "/articles", "POST"));
  EXPECT_FALSE(matches("POST /articles", "/articles", "GET"));
  EXPECT_FALSE(matches("POST /articles", "/articles", "post"));
  EXPECT_TRUE(matches("GET /articles", "/articles", "HEAD"));
  EXPECT_FALSE(matches("HEAD /articles", "/articles", "GET"));
  EXPECT_FALSE(matches("POST /articles", "/articles", "HEAD"));
}

TEST(Route, no_spelling_of_a_path_gets_around_it) {
  for (const std::string_view target : {"/articles/7/", "//articles//7", "/./articles/x/../7", "/%61rticles/7",
                                        "/articles/7#x", "/../articles/7", "/articles/%37"}) {
    EXPECT_EQ(path_of(target), "/articles/7") << target;
    EXPECT_TRUE(matches("/articles/{id}", target)) << target;
  }
  EXPECT_EQ(path_of("/articles%2f7"), "/articles%2F7");
  // Patterns and paths may each be written in either way.
  for (const std::string_view pattern : {"/v1/things:batch", "/v1/things%3Abatch"}) {
    EXPECT_TRUE(matches(pattern, "/v1/things:batch")) << pattern;
    EXPECT_TRUE(matches(pattern, "/v1/things%3abatch")) << pattern;
  }
  for (const std::string_view pattern : {"/\u6587\u7AE0/{id}", "/%E6%96%87%e7%ab%a0/{id}"}) {
    EXPECT_TRUE(matches(pattern, "/%e6%96%87%E7%AB%A0/7")) << pattern;
    EXPECT_TRUE(matches(pattern, "/\u6587%E7%AB%A0/7")) << pattern;
  }
  EXPECT_EQ(path_of("/u/bob%40x"), path_of("/u/bob@x"));
  EXPECT_EQ(path_of(""), "/");
  EXPECT_EQ(path_of("/.."), "/");
  EXPECT_EQ(path_of("/%2e%2e/a"), "/a");
}

TEST(Route, tells_what_is_wrong_with_a_pattern) {
  for (const std::string_view text : {"", "articles", "get /a", "GET  /a", "/a//b", "/a{id}", "/{id", "/{}", "/{a}{b}",
                                      "/{rest...}/a", "/a?b", "/a/../b", "/./a", "GET"}) {
    EXPECT_FALSE(RoutePattern::parse(text)) << text;
  }
}

}  // namespace
}  // namespace sluice::request
