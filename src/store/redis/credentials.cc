#include "store/redis/credentials.h"

#include <utility>

#include "base/read_file.h"

namespace sluice::store::redis {

std::optional<Error> Credentials::refresh() {
  if (options_.password_file.empty()) return std::nullopt;
  const auto stamp = FileStamp::of(options_.password_file);
  if (stamp && stamp == read_) return std::nullopt;
  auto password = read_password(options_.password_file);
  if (!password) return Error{options_.password_file + ": " + password.error().message};
  options_.password = *std::move(password);
  read_ = stamp;
  return std::nullopt;
}

}  // namespace sluice::store::redis
