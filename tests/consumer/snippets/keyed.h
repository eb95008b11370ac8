// What the statements in docs/keyed.md take for given.
#include "prelude.h"

#include <vector>

extern const std::string user;
extern sluice::Keyed<sluice::TokenBucket, std::string> per_user;
void too_many_requests();
