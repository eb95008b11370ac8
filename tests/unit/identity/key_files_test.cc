// Keys in files that change while they are used.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "identity/jwt_verifier.h"
#include "tests/unit/identity/token_maker.h"

namespace sluice::identity {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSecond = 1'000'000'000;

class KeyFiles : public testing::Test {
 protected:
  KeyFiles() {
    std::string name = (fs::temp_directory_path() / "sluice-keys-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~KeyFiles() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view text) {
    const fs::path path = folder_ / name;
    const fs::path next = folder_ / (name + ".next");
    std::ofstream(next, std::ios::binary) << text;
    fs::rename(next, path);
    return path.string();
  }

  fs::path folder_;
  Time now_{.steady = 5 * kSecond, .utc = 1'767'225'600 * kSecond};
};

TEST_F(KeyFiles, new_keys_are_taken_up_within_a_second_and_end_old_tokens) {
  const Signer one("the first secret of all");
  const Signer two("the second secret of all");
  const std::string path = write("secret", "the first secret of all\n");
  auto source = std::make_shared<JwtSource>();
  source->rules.algorithms = {JwtAlgorithm::hs256};
  source->rules.claims = {{"sub"}};
  auto file = KeyFile::open(path, KeySet::from_secret);
  ASSERT_TRUE(file);
  source->files.push_back(*file);
  JwtVerifier verifier(source);
  const std::string token_1 = one.token(JwtAlgorithm::hs256, R"({"sub":"1"})");
  const std::string token_2 = two.token(JwtAlgorithm::hs256, R"({"sub":"2"})");
  EXPECT_EQ(verifier.verify(token_1, now_).claims[0], "1");
  EXPECT_EQ(verifier.verify(token_2, now_).fault, JwtFault::signature);

  write("secret", "the second secret of all\n");
  now_.steady += kSecond;
  EXPECT_EQ(verifier.verify(token_2, now_).claims[0], "2");
  EXPECT_EQ(verifier.verify(token_1, now_).fault, JwtFault::signature);
}

TEST_F(KeyFiles, what_cannot_be_read_leaves_the_old_keys_in_force) {
  const Signer one("the first secret of all");
  const std::string path = write("secret", "the first secret of all");
  auto source = std::make_shared<JwtSource>();
  source->rules.algorithms = {JwtAlgorithm::hs256};
  auto file = KeyFile::open(path, KeySet::from_secret);
  ASSERT_TRUE(file);
  source->files.push_back(*file);
  JwtVerifier verifier(source);
  const std::string token = one.token(JwtAlgorithm::hs256, "{}");
  write("secret", "");
  now_.steady += kSecond;
  EXPECT_EQ(verifier.verify(token, now_).fault, JwtFault::none);
  fs::remove(path);
  now_.steady += kSecond;
  EXPECT_EQ(verifier.verify(token, now_).fault, JwtFault::none);
}

TEST_F(KeyFiles, what_was_looked_at_by_time_holds_when_the_file_breaks_before_the_next_question) {
  const std::string path = write("secret", "secret a");
  auto file = KeyFile::open(path, KeySet::from_secret);
  ASSERT_TRUE(file);
  write("secret", "secret bb");
  (*file)->look_now(now_.steady);
  write("secret", "");
  now_.steady += kSecond / 2;
  (*file)->look(now_.steady);
  EXPECT_EQ((*file)->generation(), 2U);
  (*file)->look_now(now_.steady);
  now_.steady += kSecond;
  (*file)->look(now_.steady);
  EXPECT_EQ((*file)->generation(), 2U);
  EXPECT_EQ((*file)->get()->keys()[0].secret_size(), 9U);
}

TEST_F(KeyFiles, follows_a_link_that_is_pointed_elsewhere) {
  const fs::path link = folder_ / "current";
  fs::create_symlink(write("a", "secret a"), link);
  auto file = KeyFile::open(link.string(), KeySet::from_secret);
  ASSERT_TRUE(file);
  const std::uint64_t before = (*file)->generation();
  write("b", "secret bb");
  fs::remove(link);
  fs::create_symlink(folder_ / "b", link);
  (*file)->look(now_.steady);
  EXPECT_EQ((*file)->generation(), before + 1);
  EXPECT_EQ((*file)->get()->keys()[0].secret_size(), 9U);
}

TEST_F(KeyFiles, tells_which_file_cannot_be_read) {
  const auto problem = [](const std::string& path) {
    const auto file = KeyFile::open(path, KeySet::from_secret);
    return file ? std::string() : file.error().message;
  };
  const std::string absent = (folder_ / "absent").string();
  EXPECT_EQ(problem(absent), absent + ": cannot be read: No such file or directory");
  EXPECT_EQ(problem(folder_.string()), folder_.string() + ": cannot be read: Is a directory");
  EXPECT_EQ(problem("/dev/zero"), "/dev/zero: cannot be read: it is a device, not a regular file");
  const std::string empty = write("empty", "");
  EXPECT_EQ(problem(empty), empty + ": the secret is empty");
  const std::string large = write("large", std::string(kMaxWatchedBytes + 1, 'x'));
  EXPECT_EQ(problem(large), large + ": is longer than 4194304 bytes, which are read at most");
}

}  // namespace
}  // namespace sluice::identity
