// The gRPC adapter in real servers of both kinds, over sockets, on memory and on a real Redis.
#include "sluice/adapter/grpc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <tuple>

#include "articles.grpc.pb.h"
#include "tests/integration/adapter/limited_redis.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr const char* kPolicy = R"(
domain: shop
descriptors:
  - key: route
    value: /shop.Articles/Create
    descriptors:
      - key: user
        rate_limit: { name: ArticleCreate, algorithm: token_bucket, period: 3000s, requests_per_unit: 3, on_store_failure: deny }
  - key: route
    value: /shop.Articles/Read
    descriptors:
      - key: remote_address
        rate_limit: { name: ArticleRead, algorithm: token_bucket, period: 3000s, requests_per_unit: 3, on_store_failure: local, message: "请求过于频繁" }
  - key: pace
    value: quick
    rate_limit: { algorithm: leaky_bucket, unit: second, requests_per_unit: 20, queue: 5, delay: hold }
  - key: pace
    value: slow
    rate_limit: { algorithm: leaky_bucket, unit: hour, requests_per_unit: 1, queue: 5, delay: hold }
requests:
  trusted_proxies: []
  rate_limits:
    - actions:
        - request_headers: { header_name: pace, descriptor_key: pace }
    - actions:
        - header_value_match: { descriptor_key: write, descriptor_value: "1", headers: [ { name: ":path", exact_match: /shop.Articles/Create } ] }
        - request_headers: { header_name: user, descriptor_key: needed, on_missing: deny }
    - actions:
        - route: {}
        - request_headers: { header_name: user, descriptor_key: user }
    - actions:
        - route: {}
        - remote_address: {}
)";

class SyncArticles final : public shop::Articles::Service {
 public:
  explicit SyncArticles(HttpLimits& limits) : limits_(limits) {}
  grpc::Status Create(grpc::ServerContext* context, const shop::Article* /*request*/,
                      shop::Receipt* response) override {
    return grpc_limited(limits_, context, "/shop.Articles/Create", [&] {
      response->set_number(++handled);
      return grpc::Status::OK;
    });
  }
  grpc::Status Read(grpc::ServerContext* context, const shop::Article* /*request*/, shop::Receipt* response) override {
    return grpc_limited(limits_, context, "/shop.Articles/Read", [&] {
      response->set_number(++handled);
      return grpc::Status::OK;
    });
  }
  std::atomic<unsigned> handled{0};

 private:
  HttpLimits& limits_;
};

class CallbackArticles final : public shop::Articles::CallbackService {
 public:
  // Before the first call, the limits may be changed for others.
  explicit CallbackArticles(HttpLimits*& limits) : limits_(limits) {}
  grpc::ServerUnaryReactor* Create(grpc::CallbackServerContext* context, const shop::Article* /*request*/,
                                   shop::Receipt* response) override {
    auto* const reactor =
        grpc_limited(*limits_, context, "/shop.Articles/Create", [this, response](grpc::ServerUnaryReactor* call) {
          response->set_number(++handled);
          call->Finish(grpc::Status::OK);
        });
    ++asked;
    return reactor;
  }
  grpc::ServerUnaryReactor* Read(grpc::CallbackServerContext* context, const shop::Article* /*request*/,
                                 shop::Receipt* response) override {
    return grpc_limited(*limits_, context, "/shop.Articles/Read", [this, response](grpc::ServerUnaryReactor* call) {
      response->set_number(++handled);
      call->Finish(grpc::Status::OK);
    });
  }
  std::atomic<unsigned> handled{0};
  std::atomic<unsigned> asked{0};

 private:
  HttpLimits*& limits_;
};

enum class Kind { sync, callback };

class GrpcAdapter : public ::testing::TestWithParam<std::tuple<Kind, bool>> {
 protected:
  GrpcAdapter() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    if (std::get<Kind>(GetParam()) == Kind::sync) {
      builder.RegisterService(&sync_);
    } else {
      builder.RegisterService(&callback_);
    }
    server_ = builder.BuildAndStart();
    stub_ = shop::Articles::NewStub(
        grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  }
  ~GrpcAdapter() override { server_->Shutdown(); }

  grpc::Status create(const std::string& user, std::chrono::milliseconds timeout = 30s) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    if (!user.empty()) context.AddMetadata("user", user);
    shop::Receipt receipt;
    return stub_->Create(&context, {}, &receipt);
  }
  grpc::Status read() {
    grpc::ClientContext context;
    shop::Receipt receipt;
    return stub_->Read(&context, {}, &receipt);
  }
  // A call of another user each time, by a leaky bucket.
  grpc::Status paced(const std::string& pace) {
    grpc::ClientContext context;
    context.AddMetadata("user", "paced-" + std::to_string(paced_++));
    context.AddMetadata("pace", pace);
    shop::Receipt receipt;
    return stub_->Create(&context, {}, &receipt);
  }
  [[nodiscard]] unsigned handled() const { return sync_.handled + callback_.handled; }

  unsigned paced_ = 0;
  LimitedRedis limited_{kPolicy, std::get<bool>(GetParam())};
  HttpLimits& limits_ = limited_.limits();
  HttpLimits* limits_for_callbacks_ = &limits_;
  SyncArticles sync_{limits_};
  CallbackArticles callback_{limits_for_callbacks_};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<shop::Articles::Stub> stub_;
};

TEST_P(GrpcAdapter, DeniedBeforeTheHandlerRunsAndToldWhenToComeBack) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(create("7").ok());
  const grpc::Status status = create("7");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "rate limit exceeded");
  EXPECT_THAT(status.error_details(), HasSubstr("type.googleapis.com/google.rpc.RetryInfo"));
  EXPECT_EQ(handled(), 3U);
  EXPECT_TRUE(create("8").ok());
}

TEST_P(GrpcAdapter, ALimitsOwnWords) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(read().ok());
  EXPECT_EQ(read().error_message(), "请求过于频繁");
}

TEST_P(GrpcAdapter, WithoutAnIdentityIsUnauthenticated) {
  EXPECT_EQ(create("").error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(handled(), 0U);
}

// Never too early, see the tests of the adapters for HTTP.
TEST_P(GrpcAdapter, HeldBackUntilItsSlot) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(paced("quick").ok());
    EXPECT_GE(std::chrono::steady_clock::now() - begin, i * 50ms - 1ms);
  }
}

TEST_P(GrpcAdapter, WhatWouldBeHeldBackForTooLongIsDenied) {
  EXPECT_TRUE(paced("slow").ok());
  EXPECT_EQ(paced("slow").error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(handled(), 1U);
}

class GrpcAdapterHolding : public GrpcAdapter {
 protected:
  GrpcAdapterHolding() { limits_for_callbacks_ = &patient_; }
  HttpLimits patient_{limited_.limiter(), {.max_hold = std::chrono::hours(2)}};
};

// The server's end would wait an hour for a call that went on.
TEST_P(GrpcAdapterHolding, AClientThatLeavesEndsItsWait) {
  EXPECT_TRUE(paced("slow").ok());
  grpc::ClientContext context;
  context.AddMetadata("user", "7");
  context.AddMetadata("pace", "slow");
  shop::Receipt receipt;
  const shop::Article article;
  std::promise<grpc::Status> answer;
  stub_->async()->Create(&context, &article, &receipt,
                         [&](grpc::Status status) { answer.set_value(std::move(status)); });
  while (callback_.asked < 2) std::this_thread::sleep_for(1ms);
  context.TryCancel();
  EXPECT_EQ(answer.get_future().get().error_code(), grpc::StatusCode::CANCELLED);
  server_->Shutdown();
  EXPECT_EQ(handled(), 1U);
}

// Not before the call's deadline: so it is denied at once.
TEST_P(GrpcAdapterHolding, ACallIsNotHeldBackBeyondItsDeadline) {
  EXPECT_TRUE(paced("slow").ok());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + 10min);
  context.AddMetadata("user", "7");
  context.AddMetadata("pace", "slow");
  shop::Receipt receipt;
  EXPECT_EQ(stub_->Create(&context, {}, &receipt).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

class GrpcAdapterOnRedis : public GrpcAdapter {};

TEST_P(GrpcAdapterOnRedis, WhenRedisIsDownTheWriteMethodIsClosedAndTheReadMethodCountsHere) {
  limited_.redis().kill();
  const grpc::Status status = create("7");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_details(), "");
  EXPECT_EQ(handled(), 0U);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(read().ok());
  EXPECT_EQ(read().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_P(GrpcAdapterOnRedis, ACallsDeadlineEndsItsWait) {
  limited_.redis().pause();
  EXPECT_EQ(create("7", 100ms).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  limited_.redis().resume();
  EXPECT_EQ(handled(), 0U);
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<Kind, bool>>& one) {
  return std::string(std::get<Kind>(one.param) == Kind::sync ? "Sync" : "Callback") +
         (std::get<bool>(one.param) ? "Redis" : "Memory");
}

INSTANTIATE_TEST_SUITE_P(Servers, GrpcAdapter,
                         ::testing::Combine(::testing::Values(Kind::sync, Kind::callback), ::testing::Bool()), name_of);
INSTANTIATE_TEST_SUITE_P(Servers, GrpcAdapterHolding,
                         ::testing::Combine(::testing::Values(Kind::callback), ::testing::Bool()), name_of);
INSTANTIATE_TEST_SUITE_P(Servers, GrpcAdapterOnRedis,
                         ::testing::Combine(::testing::Values(Kind::sync, Kind::callback), ::testing::Values(true)),
                         name_of);

TEST(GrpcAdapterParts, RetryInfoTellsTheWaitToTheNanosecond) {
  using std::string_literals::operator""s;
  HttpAnswer answer;
  answer.allowed = false;
  answer.reason = HttpAnswer::Reason::over_limit;
  answer.message = "no";
  answer.answer.decision.retry_after = Wait(std::chrono::nanoseconds(1'000'000'001));
  const std::string any = "\x0a\x28type.googleapis.com/google.rpc.RetryInfo\x12\x06\x0a\x04\x08\x01\x10\x01"s;
  EXPECT_EQ(grpc_status(answer).error_details(), "\x08\x08\x12\x02no\x1a"s + static_cast<char>(any.size()) + any);
  answer.answer.decision.retry_after = Wait::never();
  EXPECT_EQ(grpc_status(answer).error_details(), "");
}

TEST(GrpcAdapterParts, AddressesOfPeers) {
  EXPECT_EQ(internal::grpc_peer_address("ipv4:192.0.2.7:50051"), "192.0.2.7:50051");
  EXPECT_EQ(internal::grpc_peer_address("ipv6:%5B2001:db8::1%5D:50051"), "[2001:db8::1]:50051");
  EXPECT_EQ(internal::grpc_peer_address("unix:/run/shop.sock"), kUnixPeer);
  EXPECT_EQ(internal::grpc_peer_address("unix-abstract:shop"), kUnixPeer);
  EXPECT_EQ(internal::grpc_peer_address("vsock:3:1"), "");
}

}  // namespace
}  // namespace sluice::testing
