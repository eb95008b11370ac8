#include "queue/make_broker.h"

#include "queue/memory_broker.h"
#ifdef SLUICE_QUEUE
#include "queue/kafka_broker.h"
#include "queue/rabbit_broker.h"
#endif

namespace sluice::queue {

Result<std::unique_ptr<Broker>> make_broker(const config::QueueSettings& settings) {
  using Kind = config::QueueSettings::Kind;
  if (settings.kind == Kind::memory) return make_memory_broker(settings.max_length);
#ifdef SLUICE_QUEUE
  if (settings.kind == Kind::rabbitmq) return make_rabbit_broker(settings);
  auto broker = make_kafka_broker(settings);
  if (!broker) return Error{"queues." + settings.name + ": " + broker.error().message};
  return broker;
#else
  return Error{"queues." + settings.name + ": this build has no Kafka and no RabbitMQ (SLUICE_QUEUE is off)"};
#endif
}

}  // namespace sluice::queue
