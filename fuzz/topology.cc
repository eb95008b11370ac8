// What sentinels and nodes of a cluster may say: any bytes, in any pieces, to those that ask them where the servers
// are. The first byte says how long the pieces are and who asks; the rest is also read as the text of a redirection.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "store/redis/redirect.h"
#include "store/redis/sentinel.h"
#include "store/redis/slots.h"

namespace {

using namespace sluice::store::redis;  // NOLINT(google-build-using-namespace)

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_address(const Address& address) { return !address.host.empty() && address.port != 0 && address.path.empty(); }

// Feeds a guide as a session does, and connects again as often as it wishes to.
void feed(Guide& guide, std::string_view bytes, std::size_t piece) {
  std::int64_t now = 1'000'000'000;
  for (int steps = 0; !bytes.empty() && steps < 1'000; ++steps) {
    if (guide.wish() == Machine::Wish::disconnect) guide.finish_disconnect();
    guide.flush(now);
    if (guide.wish() == Machine::Wish::connect) {
      guide.begin_connect(now);
      bool is_told = false;
      guide.locate(
          [&](const std::optional<Address>& address, std::string_view) { is_told = address && is_address(*address); });
      require(is_told);
      guide.connected(now);
      require(!guide.output().empty());
      guide.output().clear();
    }
    guide.received(bytes.substr(0, piece), now);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    if (guide.wish() != Machine::Wish::connect) {
      now = std::min(now + 10'000'000, guide.next_wakeup());
      if (guide.next_wakeup() <= now) guide.wake(now);
    }
  }
  guide.closed(now, {});
}

class Masters final : private SentinelClient::Owner {
 public:
  void run(std::string_view bytes, std::size_t piece) {
    Login login({}, {});
    SentinelClient sentinels({{.host = "a", .port = 1}, {.host = "b", .port = 1}}, "m", login, 1, *this);
    int answers = 0;
    for (int i = 0; i < 2; ++i) {
      sentinels.find_master([&](const std::optional<Address>& address, std::string_view) {
        ++answers;
        require(!address || is_address(*address));
      });
    }
    feed(sentinels, bytes, piece);
    require(answers <= 2);
  }

 private:
  void master_is(const Address& address) override { require(is_address(address)); }
};

class Maps final : private SlotsClient::Owner {
 public:
  void run(std::string_view bytes, std::size_t piece) {
    Login login({}, {});
    SlotsClient slots({{.host = "a", .port = 1}, {.host = "b", .port = 1}}, login, 1, *this);
    slots.set_trouble((bytes.size() & 1U) != 0);
    feed(slots, bytes, piece);
  }

 private:
  // Each master is told once and serves some slot, and each slot is served by nobody or by one of them.
  void map_loaded(SlotMap map) override {
    require(!map.masters.empty() && map.owner.size() == kSlots);
    std::vector<bool> serves(map.masters.size(), false);
    for (const std::uint16_t owner : map.owner) {
      if (owner == SlotMap::kNobody) continue;
      require(owner < map.masters.size());
      serves[owner] = true;
    }
    require(std::ranges::all_of(serves, [](bool does) { return does; }));
    for (auto i = map.masters.begin(); i != map.masters.end(); ++i) {
      require(is_address(*i) && std::find(map.masters.begin(), i, *i) == i);
    }
  }
  void no_map(std::string_view /*why*/) override {}
};

void redirect(std::string_view text) {
  const auto found = parse_redirect(text);
  if (!found) return;
  const bool names_node = found->kind != Redirect::Kind::try_again;
  require(found->slot < kSlots);
  require(!names_node || (found->to.port != 0 && !found->is_down));
  require(text.starts_with("MOVED ") || text.starts_with("ASK ") || text.starts_with("TRYAGAIN") ||
          text.starts_with("CLUSTERDOWN"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t piece = 1U + (data[0] & 0x7fU) * 8U;
  if ((data[0] & 0x80U) != 0) {
    Masters().run(bytes, piece);
  } else {
    Maps().run(bytes, piece);
  }
  redirect(bytes);
  return 0;
}
