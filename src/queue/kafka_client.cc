#include "queue/kafka_client.h"

#include <array>
#include <tuple>

namespace sluice::queue::kafka {

Result<Conf> make_conf(const std::map<std::string, std::string>& given, const Properties& own) {
  Conf conf(rd_kafka_conf_new());
  std::array<char, 512> why{};
  const auto set = [&](const std::string& name, const std::string& value) {
    return rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), why.data(), why.size()) == RD_KAFKA_CONF_OK;
  };
  for (const auto& [name, value] : own) {
    if (!given.contains(name) && !set(name, value)) return Error{name + ": " + why.data()};
  }
  for (const auto& [name, value] : given) {
    if (!set(name, value)) return Error{"properties." + name + ": " + why.data()};
  }
  return conf;
}

Result<Handle> make_client(rd_kafka_type_t type, Conf conf) {
  std::array<char, 512> why{};
  rd_kafka_t* handle = rd_kafka_new(type, conf.get(), why.data(), why.size());
  if (handle == nullptr) return Error{why.data()};
  std::ignore = conf.release();  // the client has it now
  return Handle(handle);
}

}  // namespace sluice::queue::kafka
