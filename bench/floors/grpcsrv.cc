// Floor: ShouldRateLimit on grpc++, one trivial handler in each of its server APIs.
// usage: grpcsrv sync|async|callback PORT [QUEUES]; TUNED=1 in the environment strips what a limiter does not need.
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "decide.h"
#include "rls.grpc.pb.h"

namespace {

using envoy::service::ratelimit::v3::RateLimitRequest;
using envoy::service::ratelimit::v3::RateLimitResponse;
using envoy::service::ratelimit::v3::RateLimitService;
using sluice::floors::decide;

class SyncService final : public RateLimitService::Service {
  grpc::Status ShouldRateLimit(grpc::ServerContext* /*context*/, const RateLimitRequest* request,
                               RateLimitResponse* response) override {
    decide(*request, *response);
    return grpc::Status::OK;
  }
};

class CallbackService final : public RateLimitService::CallbackService {
  grpc::ServerUnaryReactor* ShouldRateLimit(grpc::CallbackServerContext* context, const RateLimitRequest* request,
                                            RateLimitResponse* response) override {
    decide(*request, *response);
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

/// One call in flight on a completion queue. The object and its messages are reused; the context cannot be.
class AsyncCall {
 public:
  AsyncCall(RateLimitService::AsyncService& service, grpc::ServerCompletionQueue& queue)
      : service_(service), queue_(queue) {
    arm();
  }

  void step(bool ok) {
    if (answered_) {
      arm();
    } else if (ok) {
      decide(request_, response_);
      answered_ = true;
      writer_->Finish(response_, grpc::Status::OK, this);
    }
  }

 private:
  void arm() {
    answered_ = false;
    request_.Clear();
    response_.Clear();
    writer_.reset();
    context_ = std::make_unique<grpc::ServerContext>();
    writer_ = std::make_unique<grpc::ServerAsyncResponseWriter<RateLimitResponse>>(context_.get());
    service_.RequestShouldRateLimit(context_.get(), &request_, writer_.get(), &queue_, &queue_, this);
  }

  RateLimitService::AsyncService& service_;
  grpc::ServerCompletionQueue& queue_;
  std::unique_ptr<grpc::ServerContext> context_;
  RateLimitRequest request_;
  RateLimitResponse response_;
  std::unique_ptr<grpc::ServerAsyncResponseWriter<RateLimitResponse>> writer_;
  bool answered_ = false;
};

void serve(RateLimitService::AsyncService& service, grpc::ServerCompletionQueue& queue) {
  constexpr int kCallsArmed = 512;
  std::vector<std::unique_ptr<AsyncCall>> calls;
  calls.reserve(kCallsArmed);
  for (int i = 0; i < kCallsArmed; ++i) calls.push_back(std::make_unique<AsyncCall>(service, queue));
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) static_cast<AsyncCall*>(tag)->step(ok);
}

void tune(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_MINIMAL_STACK, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  builder.AddChannelArgument("grpc.enable_retries", 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CENSUS, 0);
  builder.AddChannelArgument("grpc.http2.write_buffer_size", 65536);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: grpcsrv sync|async|callback PORT [QUEUES]\n");
    return 1;
  }
  const std::string api = argv[1];
  const int queues = argc > 3 ? std::atoi(argv[3]) : 1;

  grpc::ServerBuilder builder;
  builder.AddListeningPort(std::string("127.0.0.1:") + argv[2], grpc::InsecureServerCredentials());
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1000);
  if (std::getenv("TUNED") != nullptr) tune(builder);

  SyncService sync_service;
  CallbackService callback_service;
  RateLimitService::AsyncService async_service;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> completion_queues;
  if (api == "sync") {
    builder.RegisterService(&sync_service);
    if (argc > 3) {
      builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, queues);
      builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
      builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
    }
  } else if (api == "callback") {
    builder.RegisterService(&callback_service);
  } else {
    builder.RegisterService(&async_service);
    for (int i = 0; i < queues; ++i) completion_queues.push_back(builder.AddCompletionQueue());
  }

  const auto server = builder.BuildAndStart();
  if (!server) return 1;
  std::fprintf(stderr, "ready %s\n", api.c_str());
  if (completion_queues.empty()) {
    server->Wait();
    return 0;
  }
  std::vector<std::thread> threads;
  threads.reserve(completion_queues.size());
  for (auto& queue : completion_queues) {
    threads.emplace_back([&async_service, &queue] { serve(async_service, *queue); });
  }
  for (auto& thread : threads) thread.join();
}
