#include "base/read_file.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace sluice {
namespace {

class ReadFile : public ::testing::Test {
 protected:
  ReadFile() : folder_(std::filesystem::temp_directory_path() / ("sluice_read_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~ReadFile() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string refusal(const std::string& path) {
    const auto text = read_regular_file(path, 10);
    const auto told = refusal_of_irregular(path);
    if (text) return "read: " + *text;
    EXPECT_EQ(told ? told->message : text.error().message, text.error().message);
    return text.error().message;
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(ReadFile, ReadsARegularFileByALinkToo) {
  std::ofstream(path("a")) << std::string(100000, 'x');
  std::filesystem::create_symlink("a", path("b"));
  struct stat status{};
  const auto text = read_regular_file(path("b"), 99999, &status);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, std::string(99999, 'x'));
  EXPECT_EQ(status.st_size, 100000);
  EXPECT_EQ(read_regular_file(path("a"), std::string::npos)->size(), 100000U);
  EXPECT_FALSE(refusal_of_irregular(path("b")));
}

TEST_F(ReadFile, APasswordIsTheFirstLine) {
  const auto of = [&](const std::string& text) {
    std::ofstream(path("password"), std::ios::binary) << text;
    const auto password = read_password(path("password"));
    return password ? *password : "error: " + password.error().message;
  };
  for (const char* end : {"", "\n", "\r\n", "\r", "\nmore\n", "\r\nmore\r\n"})
    EXPECT_EQ(of(std::string("s3 cret") + end), "s3 cret");
  for (const char* empty : {"", "\n", "\r\n", "\r", "\nmore"}) {
    EXPECT_EQ(of(empty), "error: its first line, the password, is empty");
  }
  const auto missing = read_password(path("nowhere"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "cannot be read: No such file or directory");
}

TEST_F(ReadFile, WaitsForNobody) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", path("link"));
  EXPECT_EQ(refusal(path("pipe")), "it is a pipe, not a regular file");
  EXPECT_EQ(refusal(path("link")), "it is a pipe, not a regular file");
  EXPECT_EQ(refusal("/dev/zero"), "it is a device, not a regular file");
  EXPECT_EQ(refusal("/"), "Is a directory");
  EXPECT_EQ(refusal(path("nowhere")), "No such file or directory");

  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = path("socket");
  ASSERT_LT(name.size(), sizeof(address.sun_path));
  std::ranges::copy(name, address.sun_path);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(refusal(name), "it is a socket, not a regular file");
  ::close(socket);
}

}  // namespace
}  // namespace sluice
