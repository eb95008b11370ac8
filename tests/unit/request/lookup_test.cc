#include "request/lookup.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "request/percent.h"

namespace sluice::request {
namespace {

std::string cookie(std::vector<HeaderField> headers, std::string_view name) {
  HttpRequest request;
  request.headers = headers;
  const FoundCookie found = find_cookie(request, name);
  return std::string(found.first.value_or("-")) + (found.is_ambiguous ? " or another" : "");
}

std::string parameter(std::string_view target, std::string_view name) {
  std::string value;
  return find_parameter(target, name, value) ? value : "-";
}

TEST(Lookup, headers_in_any_case_the_first_of_several) {
  const std::vector<HeaderField> headers{{"X-User", "1"}, {"x-user", "2"}, {"x-empty", ""}};
  HttpRequest request;
  request.headers = headers;
  request.target = "/a?b";
  EXPECT_EQ(find_header(request, "x-user").first, "1");
  EXPECT_EQ(find_header(request, "x-user").count, 2U);
  EXPECT_EQ(find_header(request, "x-empty").first, "");
  EXPECT_FALSE(find_header(request, "x-use").first);
  EXPECT_EQ(find_header(request, ":path").first, "/a?b");
  EXPECT_FALSE(find_header(request, ":method").first);
  EXPECT_FALSE(find_header(request, ":other").first);
}

TEST(Lookup, cookies) {
  EXPECT_EQ(cookie({{"Cookie", "a=1; session=x=y ;b=2"}}, "session"), "x=y");
  EXPECT_EQ(cookie({{"Cookie", "a=1"}, {"cookie", "session=\"q\""}}, "session"), "q");
  EXPECT_EQ(cookie({{"Cookie", "session=1; session=2"}}, "session"), "1 or another");
  EXPECT_EQ(cookie({{"Cookie", "session=1"}, {"Cookie", "a=2; session="}}, "session"), "1 or another");
  EXPECT_EQ(cookie({{"Cookie", "session=1; a=2"}, {"Cookie", "session=\"1\"; a=3"}}, "session"), "1");
  EXPECT_EQ(cookie({{"Cookie", "Session=1; xsession=2; session; =; ;;"}}, "session"), "-");
  EXPECT_EQ(cookie({{"Cookie", "session="}}, "session"), "");
  EXPECT_EQ(cookie({{"Cookie", std::string(65'536, ';')}}, "session"), "-");
}

TEST(Lookup, parameters_of_the_query) {
  EXPECT_EQ(parameter("/a?x=1&key=v%20w+z&key=2", "key"), "v w z");
  EXPECT_EQ(parameter("/a?%6bey=1", "key"), "1");
  EXPECT_EQ(parameter("/a?key", "key"), "");
  EXPECT_EQ(parameter("/a?KEY=1&xkey=2#&key=3", "key"), "-");
  EXPECT_EQ(parameter("/a?key=%zz%4", "key"), "%zz%4");
  EXPECT_EQ(parameter("/key=1", "key"), "-");
  std::string value;
  bool is_ambiguous = false;
  EXPECT_TRUE(find_parameter("/?key=1&k%65y=%31&x=2#key=3", "key", value, &is_ambiguous));
  EXPECT_FALSE(is_ambiguous);
  EXPECT_TRUE(find_parameter("/?key=1&x=2&k%65y=3&key=4", "key", value, &is_ambiguous));
  EXPECT_TRUE(is_ambiguous);
  EXPECT_EQ(value, "1");
}

TEST(Percent, equivalent_texts_become_equal) {
  const auto normal = [](std::string_view text) {
    std::string out;
    append_normal(text, out);
    return out;
  };
  EXPECT_EQ(normal("/%61rticles/%7e"), "/articles/~");
  EXPECT_EQ(normal("%2f%2F"), "%2F%2F");
  EXPECT_EQ(normal("%c3%BC"), "\xC3\xBC");
  EXPECT_EQ(normal("/bob%40x%3Ab%3b%20%25"), "/bob@x:b; %25");
  EXPECT_EQ(normal("%2541"), "%2541");
  EXPECT_EQ(normal("%3f%23"), "%3F%23");
  EXPECT_EQ(normal(normal("%%%%33%2%46%252f")), normal("%%%%33%2%46%252f"));
  EXPECT_EQ(normal("%"), "%25");
  EXPECT_EQ(normal("%4"), "%254");
  EXPECT_EQ(normal("%%34"), "%254");
}

TEST(Lookup, hosts_have_one_spelling) {
  const auto normal = [](std::string_view host) {
    std::string out;
    const HostForm form = append_normal_host(host, out);
    if (form == HostForm::good) return out;
    EXPECT_EQ(out, "") << host;
    return std::string(form == HostForm::none ? "none" : "malformed");
  };
  for (const std::string_view host :
       {"example.com", "Example.COM", "example.com.", "example.com..", "example.com:80", "example.com.:443",
        "example.com:", "example.com.:", "example.com:080", "example.com:0443", "example.com:000000000080"}) {
    EXPECT_EQ(normal(host), "example.com") << host;
  }
  EXPECT_EQ(normal("Example.com:8080"), "example.com:8080");
  EXPECT_EQ(normal("example.com:00008080"), "example.com:8080");
  EXPECT_EQ(normal("example.com:65535"), "example.com:65535");
  EXPECT_EQ(normal("example.com:00"), "example.com:0");
  for (const std::string_view host : {"[2001:DB8::1]", "[2001:db8:0::1]", "[2001:db8::1]:443",
                                      "[2001:0db8:0:0:0:0:0:1]:", "[2001:db8::0.0.0.1]:0080", "[2001:db8::1%25eth0]"}) {
    EXPECT_EQ(normal(host), "[2001:db8::1]") << host;
  }
  EXPECT_EQ(normal("[2001:DB8::80]:8443"), "[2001:db8::80]:8443");
  EXPECT_EQ(normal("[::ffff:192.0.2.1]:81"), "192.0.2.1:81");
  for (const std::string_view nobody : {"", ".", "..", ":", ":80", ".:8080"})
    EXPECT_EQ(normal(nobody), "none") << nobody;
  for (const std::string_view odd : {"a:65536",     "a:99999999999999999999",
                                     "a:8o",        "a:-1",
                                     "a:80.",       "a:80:80",
                                     "2001:db8::1", "[2001:db8::1",
                                     "[a]",         "[192.0.2.1]",
                                     "[::1]80",     "[::1]:x",
                                     "[]",          "a, b",
                                     "a/b",         "user@a",
                                     "a b",         "a?",
                                     "a#",          "a\\b",
                                     "a]"}) {
    EXPECT_EQ(normal(odd), "malformed") << odd;
  }
}

}  // namespace
}  // namespace sluice::request
