#include "front/resp/command_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace sluice::resp {
namespace {

using Status = CommandReader::Status;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::string_literals;

// The commands in `input`, which must be whole.
std::vector<std::vector<std::string>> commands_of(std::string_view input) {
  CommandReader reader;
  std::vector<std::vector<std::string>> commands;
  while (!input.empty()) {
    EXPECT_EQ(reader.read(input), Status::command) << input << ": " << reader.error();
    if (reader.used() == 0) break;
    commands.emplace_back(reader.arguments().begin(), reader.arguments().end());
    input.remove_prefix(reader.used());
  }
  return commands;
}

std::string error_of(std::string_view input) {
  CommandReader reader;
  EXPECT_EQ(reader.read(input), Status::broken) << input;
  return std::string(reader.error());
}

TEST(CommandReader, ReadsArrays) {
  EXPECT_THAT(commands_of("*2\r\n$4\r\nECHO\r\n$5\r\na\r\nbc\r\n*1\r\n$4\r\nPING\r\n"),
              ElementsAre(ElementsAre("ECHO", "a\r\nbc"), ElementsAre("PING")));
  EXPECT_THAT(commands_of("*2\r\n$1\r\nx\r\n$0\r\n\r\n"), ElementsAre(ElementsAre("x", "")));
  EXPECT_THAT(commands_of("*1\r\n$3\r\n\x00\xff\n\r\n"s), ElementsAre(ElementsAre("\x00\xff\n"s)));
}

TEST(CommandReader, EmptyCommandsAreSkipped) {
  EXPECT_THAT(commands_of("*0\r\n*-1\r\n\r\n\n"), ElementsAre(IsEmpty(), IsEmpty(), IsEmpty(), IsEmpty()));
}

TEST(CommandReader, ReadsLines) {
  EXPECT_THAT(commands_of("PING\r\n"), ElementsAre(ElementsAre("PING")));
  EXPECT_THAT(commands_of("  set\t a  b \n"), ElementsAre(ElementsAre("set", "a", "b")));
  EXPECT_THAT(commands_of(R"(echo "a b\n\x41\"" 'c d\'' '' "")"
                          "\r\n"),
              ElementsAre(ElementsAre("echo", "a b\nA\"", "c d'", "", "")));
  EXPECT_THAT(commands_of("a\"b c\" \"\\xZ\"\n"), ElementsAre(ElementsAre("ab c", "xZ")));
}

TEST(CommandReader, TellsWhatIsWrong) {
  EXPECT_EQ(error_of("*x\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(error_of("*+1\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_THAT(error_of("*1025\r\n"), HasSubstr("at most 1024 arguments"));
  EXPECT_EQ(error_of("*99999999999999999999\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(error_of("*1111111111111111111111111111"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(error_of("*1\r\n:5\r\n"), "Protocol error: expected '$', got ':'");
  EXPECT_EQ(error_of("*1\r\n*1\r\n$1\r\na\r\n"), "Protocol error: expected '$', got '*'");
  EXPECT_EQ(error_of("*1\r\n\x1b"), "Protocol error: expected '$', got '\\x1b'");
  EXPECT_EQ(error_of("*1\r\n$536870912\r\n"), "Protocol error: invalid bulk length: 0 to 65536 bytes");
  EXPECT_EQ(error_of("*1\r\n$-1\r\n"), "Protocol error: invalid bulk length: 0 to 65536 bytes");
  EXPECT_EQ(error_of("*1\r\n$2\r\nabcd"), "Protocol error: a bulk string does not end where it said");
  EXPECT_EQ(error_of("echo \"a\n"), "Protocol error: unbalanced quotes in request");
  EXPECT_EQ(error_of("echo \"a\"b\n"), "Protocol error: unbalanced quotes in request");
  EXPECT_EQ(error_of(std::string(CommandReader::kMaxLine, 'a')), "Protocol error: too big inline request");
  std::string many = "*3\r\n";
  for (int i = 0; i < 3; ++i) many += "$65536\r\n" + std::string(65536, 'a') + "\r\n";
  EXPECT_THAT(error_of(many), HasSubstr("at most 131072 bytes a command"));
}

// However a command is cut, each piece but the last wants more, and no more than there is to come.
TEST(CommandReader, WantsMoreUntilItIsWhole) {
  for (const std::string& whole :
       {"*3\r\n$4\r\nECHO\r\n$10\r\n0123456789\r\n$0\r\n\r\n"s, "echo 'a b' c\r\n"s, "*0\r\n"s}) {
    CommandReader reader;
    for (std::size_t size = 0; size < whole.size(); ++size) {
      ASSERT_EQ(reader.read(std::string_view(whole).substr(0, size)), Status::more) << whole << " " << size;
      EXPECT_GT(reader.wanted(), size);
      EXPECT_LE(reader.wanted(), whole.size());
    }
    EXPECT_EQ(reader.read(whole + "tail"), Status::command);
    EXPECT_EQ(reader.used(), whole.size());
  }
}

}  // namespace
}  // namespace sluice::resp
