#include <grpcpp/grpcpp.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "adapters/server.h"
#include "rls.grpc.pb.h"
#include "sluice/adapter/grpc.h"

namespace sluice::bench {
namespace {

using envoy::service::ratelimit::v3::RateLimitRequest;
using envoy::service::ratelimit::v3::RateLimitResponse;
using envoy::service::ratelimit::v3::RateLimitService;

// Its method stands for any; the drivers for it are there.
class Service final : public RateLimitService::CallbackService {
 public:
  explicit Service(HttpLimits* limits) : limits_(limits) {}

  grpc::ServerUnaryReactor* ShouldRateLimit(grpc::CallbackServerContext* context, const RateLimitRequest* request,
                                            RateLimitResponse* response) override {
    const auto answer = [response](grpc::ServerUnaryReactor* call) {
      response->set_overall_code(RateLimitResponse::OK);
      call->Finish(grpc::Status::OK);
    };
    if (limits_ == nullptr) {
      grpc::ServerUnaryReactor* const call = context->DefaultReactor();
      answer(call);
      return call;
    }
    const auto& entry = request->descriptors(0).entries(0);
    return grpc_limited(*limits_, context,
                        LimiterRequest{.domain = "bench", .descriptors = {{{entry.key(), entry.value()}}}}, answer);
  }

 private:
  HttpLimits* const limits_;
};

}  // namespace

void serve_grpc(int port, HttpLimits* limits) {
  Service service(limits);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server != nullptr) server->Wait();
  std::exit(1);
}

}  // namespace sluice::bench
