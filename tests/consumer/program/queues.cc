// Uses what sluice::queues has, in memory, as a program out there would. Prints "all right", or what is not.
#include <sluice/http_queues.h>
#include <sluice/queues.h>

#include <future>
#include <iostream>
#include <string>

int main() {
  sluice::LimiterOptions options;
  options.policy_text =
      "domain: d\nrequests: {rate_limits: [{actions: [{generic_key: {descriptor_value: g}}]}]}\ndescriptors:\n"
      "  - key: generic_key\n    rate_limit: {unit: second, requests_per_unit: 100, algorithm: token_bucket, burst: 1, "
      "overflow: {queue: q}}\n";
  sluice::Limiter limiter(options);
  sluice::Queues queues(limiter, {.queues = "q: {type: memory}"});
  sluice::HttpQueues http(limiter, queues);
  sluice::HttpAnswer answer;
  sluice::HttpRequest request;
  request.method = "POST";
  request.target = "/orders";
  for (int i = 0; i < 100 && answer.reason != sluice::HttpAnswer::Reason::waiting; ++i)
    http.admit(request, "b", answer);
  if (answer.status != 202) {
    std::cout << "nothing waits: " << answer.status << '\n';
    return 1;
  }
  std::promise<std::string> body;
  bool is_told = false;
  sluice::QueueDrain drain(queues, "q", [&](sluice::QueuedDelivery delivery, sluice::QueueDrain::Done done) {
    if (!is_told) body.set_value(delivery.request.body);
    is_told = true;
    done({});
  });
  const std::string got = body.get_future().get();
  drain.stop();
  std::cout << (got == "b" && drain.counts().delivered >= 1 ? "all right" : "something else came: " + got) << '\n';
}
