#include "server/waiting_room.h"

#include <chrono>
#include <utility>

#include "base/log.h"
#include "config/redis_options.h"
#include "queue/http_deliverer.h"
#include "queue/make_broker.h"

namespace sluice::server {
namespace {

constexpr std::size_t kMostTickets = 1'000'000;
constexpr std::chrono::seconds kCheckTimeout{5};
constexpr std::chrono::seconds kDeliveryTimeout{30};

}  // namespace

WaitingRoom::WaitingRoom(const config::Settings& settings, const policy::SnapshotHolder& policies)
    : settings_(settings), policies_(policies) {}

WaitingRoom::~WaitingRoom() { stop(); }

std::vector<std::string> WaitingRoom::prepare() {
  if (settings_.queues.empty()) return {};
  std::vector<std::string> problems;
  std::unique_ptr<queue::Tickets> tickets;
  if (settings_.redis_url.empty()) {
    tickets = queue::make_memory_tickets(kMostTickets);
  } else {
    auto made = queue::make_redis_tickets(queue::tickets_options_of(config::redis_options(settings_, kCheckTimeout)));
    if (!made) return {"store.redis.url: " + made.error().message};
    tickets = *std::move(made);
  }
  desk_ = std::make_unique<queue::Desk>(std::move(tickets));
  for (const config::QueueSettings& settings : settings_.queues) {
    const bool is_shared = settings.kind != config::QueueSettings::Kind::memory;
    if (is_shared && settings_.redis_url.empty()) {
      problems.push_back("queues." + settings.name +
                         ": its drainers share limits and tickets through Redis: set store.redis.url");
      continue;
    }
    if (!is_shared) {
      if (const auto upstream = queue::parse_upstream(settings.deliver); !upstream) {
        problems.push_back("queues." + settings.name + ".deliver: " + upstream.error().message);
        continue;
      }
      if (const auto trust = queue::make_trust(settings.ca); !trust) {
        problems.push_back("queues." + settings.name + ".ca: " + trust.error().message);
        continue;
      }
    }
    auto broker = queue::make_broker(settings);
    if (broker) {
      desk_->add(settings, *std::move(broker));
    } else {
      problems.push_back(broker.error().message);
    }
  }
  return problems;
}

void WaitingRoom::start(const std::shared_ptr<store::MemoryStore>& memory, metrics::Registry& registry) {
  if (desk_ == nullptr) return;
  registry.add_families([desk = desk_.get()](metrics::TextFormat& text) { desk->expose(text); });
  desk_->start();
  for (const config::QueueSettings& queue : settings_.queues) {
    log::info("queue " + config::to_text(queue));
    if (queue.kind == config::QueueSettings::Kind::memory) start_drain(queue, memory);
  }
}

void WaitingRoom::start_drain(const config::QueueSettings& queue, const std::shared_ptr<store::MemoryStore>& memory) {
  queue::DrainSetup setup;
  setup.options.queue = queue.name;
  setup.options.drainer = queue::new_ticket();
  setup.options.drain_timeout = settings_.drain_timeout;
  setup.policies = &policies_;
  if (settings_.redis_url.empty()) {
    setup.memory = memory;
  } else {
    setup.redis = config::redis_options(settings_, kCheckTimeout);
  }
  setup.tickets = &desk_->tickets();
  setup.broker = desk_->broker(queue.name);
  // Checked before.
  setup.make_deliverer = [upstream = *queue::parse_upstream(queue.deliver),
                          trust = *queue::make_trust(queue.ca)](boost::asio::io_context& io) {
    return queue::make_http_deliverer(io, upstream, trust, kDeliveryTimeout);
  };
  Drain drain;
  drain.runner = std::make_unique<queue::DrainRunner>(setup);
  drain.thread = std::thread([runner = drain.runner.get()] { runner->run(); });
  drains_.push_back(std::move(drain));
}

void WaitingRoom::stop() {
  for (const Drain& drain : drains_) drain.runner->stop();
  for (Drain& drain : drains_) drain.thread.join();
  drains_.clear();
  if (desk_ != nullptr) desk_->stop();
}

}  // namespace sluice::server
