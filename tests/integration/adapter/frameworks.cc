#include "tests/integration/adapter/http_servers.h"

namespace sluice::testing {

const std::vector<Framework>& http_frameworks() {
  static const std::vector<Framework> all{
#ifdef SLUICE_TEST_HTTPLIB
      {"Httplib", start_httplib},
#endif
#ifdef SLUICE_TEST_BEAST
      {"Beast", start_beast},
#endif
  };
  return all;
}

}  // namespace sluice::testing
