#include "front/resp/repeated_command.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "front/resp/command_reader.h"

namespace sluice::resp {
namespace {

using namespace std::string_literals;

const std::string kBefore = "*5\r\n$11\r\nCL.THROTTLE\r\n$";
const std::string kBehind = "\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n";

std::string command(const std::string& key) { return kBefore + std::to_string(key.size()) + "\r\n" + key + kBehind; }

class Repeated : public testing::Test {
 protected:
  void remember(const std::string& text) {
    ASSERT_EQ(reader_.read(text), CommandReader::Status::command) << reader_.error();
    const auto throttle = read_throttle(reader_.arguments());
    ASSERT_TRUE(throttle);
    repeated_.remember(reader_.text(), *throttle);
  }
  CommandReader reader_;
  RepeatedCommand repeated_;
};

TEST_F(Repeated, AnotherKeyIsTheSameCommand) {
  EXPECT_FALSE(repeated_.matches(command("a"))) << "nothing is remembered yet";
  remember(command("user:1"));
  const std::string odd = "$3\r\n\0\xff"s;
  for (const std::string& key : {"user:2"s, ""s, "x"s, odd, std::string(CommandReader::kMaxBulk, 'k')}) {
    const std::string text = command(key) + "*1\r\n";
    ASSERT_TRUE(repeated_.matches(text)) << key.size();
    EXPECT_EQ(repeated_.throttle().key, key);
    EXPECT_EQ(repeated_.throttle().bucket.burst, 16U);
    EXPECT_EQ(repeated_.used(), text.size() - 4);
  }
}

// What is not quite the same is left to the reader.
TEST_F(Repeated, AnythingElseIsNot) {
  remember(command("user:1"));
  const std::string whole = command("user:2");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(repeated_.matches(std::string_view(whole).substr(0, size))) << size;
    std::string other = whole;
    // A byte of the key may be another; a digit of its length says where it ends.
    if (size >= kBefore.size() + 3 && size < whole.size() - kBehind.size()) continue;
    other[size] = static_cast<char>(other[size] ^ 1);
    EXPECT_FALSE(repeated_.matches(other)) << other;
  }
  for (const char* length : {"-1", "+6", " 6", "", "65537", "000006", "99999999999999999999999"}) {
    EXPECT_FALSE(repeated_.matches(kBefore + length + "\r\nuser:2" + kBehind)) << length;
  }
}

TEST_F(Repeated, LinesAndLongCommandsAreNotRemembered) {
  for (const std::string& text :
       {"CL.THROTTLE a 15 30 60\r\n"s,
        "*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\na\r\n$2\r\n15\r\n$99\r\n" + std::string(97, '0') + "30\r\n$2\r\n60\r\n"}) {
    remember(command("user:1"));
    remember(text);
    EXPECT_FALSE(repeated_.matches(text));
    EXPECT_FALSE(repeated_.matches(command("user:1")));
  }
}

}  // namespace
}  // namespace sluice::resp
