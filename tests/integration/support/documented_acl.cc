#include "tests/integration/support/documented_acl.h"

#include <fstream>
#include <stdexcept>

namespace sluice::testing {

namespace {

// What follows "ACL SETUSER ".
std::string documented(std::string_view title) {
  constexpr std::string_view command = "ACL SETUSER ";
  std::ifstream manual(SLUICE_MANUAL);
  std::string line;
  while (std::getline(manual, line)) {
    if (line != "# " + std::string(title)) continue;
    if (std::getline(manual, line) && line.starts_with(command)) return line.substr(command.size());
  }
  throw std::runtime_error("no rights for " + std::string(title) + " in " + SLUICE_MANUAL);
}

}  // namespace

std::string documented_user(std::string_view title) { return "user " + documented(title) + "\n"; }

std::string documented_rights(std::string_view title) {
  const std::string user = documented(title);
  const std::size_t first = user.find('+');
  if (first == std::string::npos) throw std::runtime_error("no rights in " + user);
  return user.substr(first);
}

}  // namespace sluice::testing
