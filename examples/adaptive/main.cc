// A client that finds by itself how many calls a service can take at once, from how long they take. The service and
// the clock are simulated here: in a program of your own leave the clock out, and the limiter goes by the machine's.
#include <sluice/adaptive_concurrency.h>
#include <sluice/testing/simulated_clock.h>

#include <chrono>
#include <iostream>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;

// Answers in 10 ms while it has a worker for each call; calls beyond that queue up, and all of them get slower.
struct Service {
  int workers;
  [[nodiscard]] std::chrono::milliseconds latency(int calls) const {
    return calls <= workers ? 10ms : calls * 10ms / workers;
  }
};

// Twenty seconds of more demand than the service can take: each time as many calls as the limiter lets go, at most 200.
void run(sluice::AdaptiveConcurrency& limit, sluice::SimulatedClock& clock, const Service& service) {
  for (auto elapsed = 0ms; elapsed < 20s;) {
    std::vector<sluice::AdaptiveConcurrency::Permit> calls;
    int sent = 0;
    for (; sent < 200; ++sent) {
      auto permit = limit.try_acquire();
      if (!permit) break;  // shed this one: the service couldn't answer it in time
      calls.push_back(std::move(permit));
    }
    const auto latency = service.latency(sent);
    clock.advance(latency);
    elapsed += latency;
    // A call that had timed out or been refused for lack of capacity would be a drop() instead.
    for (auto& call : calls) call.success();
  }
}

}  // namespace

int main() {
  sluice::SimulatedClock clock;
  sluice::AdaptiveConcurrency limit{{.initial = 4, .max = 500}, &clock};
  for (const Service service : {Service{20}, Service{100}, Service{20}}) {
    run(limit, clock, service);
    std::cout << service.workers << " workers: limit " << limit.figures().limit << '\n';
  }
}
