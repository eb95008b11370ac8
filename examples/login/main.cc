// Login protection: an attempt costs little, a wrong password costs more, the right one gives the account its credit
// back. Who guesses is soon told to wait; who mistypes once or twice isn't.
#include <sluice/limiter.h>

#include <iostream>
#include <string>

namespace {

class Logins {
 public:
  std::string attempt(const std::string& account, const std::string& address, bool is_right) {
    const sluice::LimiterRequest both{.domain = "login",
                                      .descriptors = {{{"account", account}}, {{"address", address}}}};
    const sluice::LimiterAnswer answer = limiter_.check(both);
    if (!answer.allowed) return "wait, says " + answer.limit;
    if (!is_right) {
      sluice::LimiterRequest more = both;
      more.cost = 2;
      limiter_.apply(more, sluice::LimiterVerb::penalize());
      return "wrong password";
    }
    // The account's alone: else who owns one account could clear the address that they guess others' from.
    limiter_.apply({.domain = "login", .descriptors = {{{"account", account}}}}, sluice::LimiterVerb::reset());
    return "welcome";
  }

 private:
  sluice::Limiter limiter_{{.policy_paths = {"policy.yaml"}}};
};

}  // namespace

int main() {
  Logins logins;
  for (int i = 0; i < 5; ++i) std::cout << "guess: " << logins.attempt("ann", "203.0.113.9", false) << "\n";
  std::cout << "ann: " << logins.attempt("ann", "192.0.2.1", true) << "\n";

  for (int i = 0; i < 2; ++i) std::cout << "typo: " << logins.attempt("bob", "192.0.2.2", false) << "\n";
  std::cout << "bob: " << logins.attempt("bob", "192.0.2.2", true) << "\n";
  for (int i = 0; i < 3; ++i) std::cout << "typo: " << logins.attempt("bob", "192.0.2.2", false) << "\n";

  // One guess at each of many accounts: the address runs out.
  int guesses = 0;
  while (logins.attempt("user" + std::to_string(guesses), "198.51.100.7", false) == "wrong password") ++guesses;
  std::cout << "guesses at " << guesses << " accounts, then: " << logins.attempt("carol", "198.51.100.7", true) << "\n";
}
