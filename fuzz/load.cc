// What the load generator reads: a daemon's answers in any shape, and values as the command line gives them. The first
// byte says which.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "load/grpc_protocol.h"
#include "load/http_protocol.h"
#include "load/traffic.h"

namespace {

class Nobody final : public sluice::load::Protocol::Owner {
 public:
  void answered(sluice::load::Ticket /*ticket*/, const sluice::load::Outcome& /*outcome*/) override {}
};

void feed(sluice::load::Protocol& protocol, std::string_view bytes) {
  protocol.open();
  for (sluice::load::Ticket ticket = 0; ticket < 3; ++ticket) protocol.ask(ticket, "d", {{{"k", "v"}}}, ticket);
  (void)protocol.output();
  const std::size_t half = bytes.size() / 2;
  if (protocol.feed(bytes.substr(0, half))) (void)protocol.feed(bytes.substr(half));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  Nobody nobody;
  switch (data[0] % 5) {
    case 0:
      (void)sluice::load::read_rate_limit_response(rest);
      break;
    case 1:
      (void)sluice::load::read_check_answer(200, rest);
      break;
    case 2: {
      sluice::load::HttpProtocol http(nobody, "h");
      feed(http, rest);
      break;
    }
    case 3: {
      sluice::load::GrpcProtocol grpc(nobody, "h");
      feed(grpc, rest);
      break;
    }
    default:
      if (auto traffic = sluice::load::Traffic::parse({std::string(rest)}, 1)) (void)traffic->next();
  }
  return 0;
}
