#include "tls/openssl_error.h"

#include <openssl/err.h>

namespace sluice::tls {

std::string take_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return {};
  if (ERR_SYSTEM_ERROR(code)) return "a system call has failed";
  const char* const reason = ERR_reason_error_string(code);
  return reason == nullptr ? "error " + std::to_string(ERR_GET_REASON(code)) : std::string(reason);
}

}  // namespace sluice::tls
