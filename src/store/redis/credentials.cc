#include "store/redis/credentials.h"

#include <cerrno>
#include <fstream>
#include <system_error>

namespace sluice::store::redis {

std::optional<Error> Credentials::refresh() {
  if (options_.password_file.empty()) return std::nullopt;
  const auto stamp = FileStamp::of(options_.password_file);
  if (stamp && stamp == read_) return std::nullopt;
  const auto fail = [&](const std::string& why) { return Error{options_.password_file + ": " + why}; };
  std::ifstream in(options_.password_file, std::ios::binary);
  if (!in) return fail("cannot read the password: " + std::generic_category().message(errno));
  std::string line;
  std::getline(in, line);
  if (line.ends_with('\r')) line.pop_back();
  if (line.empty()) return fail("its first line, the password, is empty");
  options_.password = line;
  read_ = stamp;
  return std::nullopt;
}

}  // namespace sluice::store::redis
