// Orders beyond ten a second wait in memory and are worked off at the limit's rate; with Kafka or RabbitMQ only the
// text of the queue and a Redis for the limiter would change.
#include <sluice/queues.h>

#include <condition_variable>
#include <iostream>
#include <mutex>
#include <string>

int main() {
  sluice::LimiterOptions options;
  options.policy_text = R"(
domain: shop
descriptors:
  - key: to
    value: orders
    rate_limit: { unit: second, requests_per_unit: 10, algorithm: token_bucket, burst: 2, overflow: { queue: orders } }
)";
  sluice::Limiter limiter(options);
  sluice::Queues queues(limiter, {.queues = "orders: { type: memory }"});

  sluice::LimiterRequest keys;
  keys.domain = "shop";
  keys.descriptors = {{{"to", "orders"}}};
  std::string last;
  for (int number = 1; number <= 5; ++number) {
    const sluice::Admitted answer = queues.admit(keys, {.key = "customer-42", .body = std::to_string(number)});
    if (answer.kind == sluice::Admitted::Kind::allowed) {
      std::cout << "order " << number << " goes on\n";
    } else if (answer.kind == sluice::Admitted::Kind::waiting) {
      std::cout << "order " << number << " waits at place " << answer.place << '\n';
      last = answer.ticket;
    } else {
      std::cout << "order " << number << " is refused: " << answer.message << '\n';
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  int left = 3;
  sluice::QueueDrain drain(queues, "orders", [&](const sluice::QueuedDelivery& delivery, const auto& done) {
    std::cout << "working on order " << delivery.request.body << '\n';
    done({.kind = sluice::DeliveryEnd::Kind::delivered, .status = 200});
    const std::scoped_lock lock(mutex);
    --left;
    changed.notify_one();
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return left == 0; });
  }
  drain.stop();
  std::cout << "the last order was " << (queues.ticket(last)->kind == sluice::TicketState::Kind::done ? "done" : "left")
            << '\n';
}
