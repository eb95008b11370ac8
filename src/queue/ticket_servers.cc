#include "queue/ticket_servers.h"

#include <utility>

#include "base/log.h"
#include "queue/ticket_replies.h"

namespace sluice::queue {
namespace {

using store::redis::Address;
using Steady = std::chrono::steady_clock;
using Words = std::vector<std::string>;

constexpr std::chrono::milliseconds kPause{200};

}  // namespace

TicketServers::TicketServers(store::redis::Resolved resolved, const store::redis::Script& script,
                             std::chrono::milliseconds timeout)
    : target_(std::move(resolved.target)),
      script_(script),
      timeout_(timeout),
      sentinel_over_tls_(resolved.sentinel_over_tls),
      credentials_(std::move(resolved.credentials)),
      sentinel_credentials_(std::move(resolved.sentinel_credentials)) {}

Result<std::unique_ptr<TicketServers>> TicketServers::create(store::redis::Resolved resolved,
                                                             const store::redis::TlsFiles& files,
                                                             const store::redis::Script& script,
                                                             std::chrono::milliseconds timeout) {
  const store::redis::TlsFiles sentinel_files = resolved.sentinel_tls;
  std::unique_ptr<TicketServers> servers(new TicketServers(std::move(resolved), script, timeout));
  if (servers->target_.tls) {
    auto tls = store::redis::Tls::create(files);
    if (!tls) return tls.error();
    servers->tls_ = *std::move(tls);
  }
  if (servers->sentinel_over_tls_) {
    auto tls = store::redis::Tls::create(sentinel_files);
    if (!tls) return tls.error();
    servers->sentinel_tls_ = *std::move(tls);
  }
  return servers;
}

TicketLink* TicketServers::link_to(std::uint16_t slot) {
  if (!is_cluster()) {
    if (const auto link = links_.find(""); link != links_.end()) return link->second.get();
    // Attempts in quick succession help nobody.
    if (Steady::now() < retry_at_) return nullptr;
    const bool has_sentinels = target_.topology == store::redis::Topology::sentinel;
    const auto address = has_sentinels ? ask_sentinels() : target_.nodes.front();
    if (!address) return nullptr;
    auto link = connect(*address, tls_.get(), credentials_);
    return link == nullptr ? nullptr : links_.emplace("", std::move(link)).first->second.get();
  }
  if (const auto place = places_.find(slot); place != places_.end()) {
    if (TicketLink* link = open_at(place->second)) return link;
    places_.erase(slot);
    return nullptr;
  }
  // Any node tells which is the right one.
  for (std::size_t i = 0; i < target_.nodes.size(); ++i) {
    if (TicketLink* link = open_at(target_.nodes[next_seed_ % target_.nodes.size()])) return link;
    ++next_seed_;
  }
  return nullptr;
}

TicketLink* TicketServers::follow(const store::redis::Redirect& redirect) {
  using Kind = store::redis::Redirect::Kind;
  if (!is_cluster() || redirect.kind == Kind::try_again || redirect.to.host.empty()) return nullptr;
  if (redirect.kind == Kind::moved) places_.insert_or_assign(redirect.slot, redirect.to);
  TicketLink* link = open_at(redirect.to);
  if (link != nullptr && redirect.kind == Kind::ask && !greet(*link, {"ASKING"})) return nullptr;
  return link;
}

TicketLink* TicketServers::open_at(const Address& address) {
  const std::string name = address.to_text();
  if (const auto link = links_.find(name); link != links_.end()) return link->second.get();
  if (Steady::now() < retry_at_) return nullptr;
  auto link = connect(address, tls_.get(), credentials_);
  return link == nullptr ? nullptr : links_.emplace(name, std::move(link)).first->second.get();
}

void TicketServers::drop(TicketLink& link, const std::string& why) {
  note(why);
  std::erase_if(links_, [&](const auto& one) { return one.second.get() == &link; });
}

std::unique_ptr<TicketLink> TicketServers::connect(const Address& address, store::redis::Tls* tls,
                                                   store::redis::Credentials& credentials) {
  auto link = std::make_unique<TicketLink>(timeout_);
  if (!link->open(address, tls)) {
    note(link->problem());
    return nullptr;
  }
  if (const auto error = credentials.refresh(); error && credentials.password().empty()) {
    note(error->message);
    return nullptr;
  }
  if (!credentials.password().empty()) {
    Words words{"AUTH"};
    if (!credentials.user().empty()) words.push_back(credentials.user());
    words.push_back(credentials.password());
    if (!greet(*link, words)) return nullptr;
  }
  if (&credentials == &sentinel_credentials_) return link;
  if (target_.database != 0 && !greet(*link, {"SELECT", std::to_string(target_.database)})) return nullptr;
  if (!greet(*link, {"SCRIPT", "LOAD", script_.text})) return nullptr;
  if (std::exchange(down_, false)) log::info("tickets: Redis answers again");
  return link;
}

std::optional<Address> TicketServers::ask_sentinels() {
  for (const Address& sentinel : target_.nodes) {
    const auto link = connect(sentinel, sentinel_tls_.get(), sentinel_credentials_);
    if (link == nullptr) continue;
    link->append(Words{"SENTINEL", "get-master-addr-by-name", target_.master});
    const store::redis::Reply reply = link->receive();
    if (reply == nullptr || reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) continue;
    return Address{.host = std::string(text_of(*reply->element[0])),
                   .port = number_of<std::uint16_t>(text_of(*reply->element[1]))};
  }
  note("no sentinel names the master " + target_.master);
  return std::nullopt;
}

bool TicketServers::greet(TicketLink& link, const Words& words) {
  link.append(words);
  const store::redis::Reply reply = link.receive();
  if (reply != nullptr && reply->type != REDIS_REPLY_ERROR) return true;
  note(reply == nullptr ? link.problem() : std::string(text_of(*reply)));
  return false;
}

void TicketServers::note(const std::string& why) {
  if (!std::exchange(down_, true)) log::warn("tickets: Redis does not answer", {{"reason", why}});
  retry_at_ = Steady::now() + kPause;
}

}  // namespace sluice::queue
