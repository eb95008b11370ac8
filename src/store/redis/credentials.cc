#include "store/redis/credentials.h"

#include <cstddef>

#include "base/read_file.h"

namespace sluice::store::redis {

std::optional<Error> Credentials::refresh() {
  if (options_.password_file.empty()) return std::nullopt;
  const auto stamp = FileStamp::of(options_.password_file);
  if (stamp && stamp == read_) return std::nullopt;
  const auto fail = [&](const std::string& why) { return Error{options_.password_file + ": " + why}; };
  constexpr std::size_t most = 64U << 10U;
  const auto text = read_regular_file(options_.password_file, most);
  if (!text) return fail("cannot read the password: " + text.error().message);
  std::string line = text->substr(0, text->find('\n'));
  if (line.ends_with('\r')) line.pop_back();
  if (line.empty()) return fail("its first line, the password, is empty");
  options_.password = line;
  read_ = stamp;
  return std::nullopt;
}

}  // namespace sluice::store::redis
