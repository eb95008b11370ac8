// A verified token that comes again, and a request mapped by its claim: ns each.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "identity/jwt_verifier.h"
#include "request/mapper.h"
#include "tests/unit/identity/token_maker.h"

namespace {

using sluice::Time;
using sluice::identity::JwtAlgorithm;

constexpr Time kNow{.steady = 1'000'000'000, .utc = 1'767'225'600'000'000'000};

std::shared_ptr<sluice::identity::JwtSource> source() {
  const std::string path = "/tmp/sluice-jwt-bench-" + std::to_string(::getpid());
  std::ofstream(path) << sluice::identity::kSecret;
  auto file = sluice::identity::KeyFile::open(path, sluice::identity::KeySet::from_secret);
  std::remove(path.c_str());
  if (!file) std::abort();
  auto made = std::make_shared<sluice::identity::JwtSource>();
  made->rules.algorithms = {JwtAlgorithm::hs256};
  made->rules.claims = {{"sub"}};
  made->files.push_back(*file);
  return made;
}

std::vector<std::string> tokens(int count, std::size_t bytes) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(sluice::identity::signer_for(JwtAlgorithm::hs256)
                      .token(JwtAlgorithm::hs256,
                             R"({"sub":")" + std::to_string(i) + R"(","x":")" + std::string(bytes, 'x') + "\"}"));
  }
  return all;
}

/// Arguments: how many tokens take turns, and bytes of their claims.
void cached_token(benchmark::State& state) {
  sluice::identity::JwtVerifier verifier(source());
  const std::vector<std::string> all =
      tokens(static_cast<int>(state.range(0)), static_cast<std::size_t>(state.range(1)));
  for (const std::string& token : all) {
    if (verifier.verify(token, kNow).fault != sluice::identity::JwtFault::none) std::abort();
  }
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(&verifier.verify(all[next], kNow));
    if (++next == all.size()) next = 0;
  }
}
BENCHMARK(cached_token)->Args({1, 300})->Args({1'000, 300})->Args({1, 1'000});

void mapped_by_claim(benchmark::State& state) {
  auto rules = std::make_shared<sluice::request::Rules>();
  rules->domain = "d";
  rules->jwt = source();
  sluice::request::Action action;
  action.kind = sluice::request::Action::Kind::jwt_claim;
  action.key = "user";
  rules->descriptors.push_back({.actions = {action}, .cost = {}});
  sluice::request::Mapper mapper(rules);
  const std::string bearer = "Bearer " + tokens(1, 300).front();
  const std::vector<sluice::HeaderField> headers{{"Host", "shop.example"},
                                                 {"User-Agent", "bench"},
                                                 {"Accept", "*/*"},
                                                 {"Authorization", bearer},
                                                 {"X-Request-Id", "0123456789abcdef"}};
  sluice::HttpRequest request;
  request.headers = headers;
  for (auto _ : state) {
    if (!mapper.map(request, kNow)) std::abort();
    benchmark::DoNotOptimize(mapper.request().descriptors.data());
  }
}
BENCHMARK(mapped_by_claim);

}  // namespace

BENCHMARK_MAIN();
