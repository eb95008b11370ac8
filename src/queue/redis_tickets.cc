#include <hiredis/hiredis.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

#include "queue/ticket_replies.h"
#include "queue/ticket_script.h"
#include "queue/ticket_servers.h"
#include "queue/ticket_text.h"
#include "queue/tickets.h"
#include "store/redis/key_slot.h"
#include "store/redis/redirect.h"
#include "store/redis/script.h"

namespace sluice::queue {
namespace {

using std::chrono::milliseconds;

/// Calls that may wait for the connection. More are refused: the store has fallen behind.
constexpr std::size_t kMostWaiting = 100'000;
constexpr std::size_t kBatch = 1024;
/// Most tickets that one script changes: nothing else is served meanwhile, for about 3 µs each.
constexpr std::size_t kMostTogether = 128;
/// From the beginning of one batch to the next, unless more are waiting than one script takes: each call costs both
/// sides as much as some tickets.
constexpr milliseconds kPace(1);
constexpr int kMostHops = 20;  ///< from node to node of a cluster, of one batch
constexpr milliseconds kReportLife = std::chrono::hours(24);
/// What tickets that are claimed together have in common is sent once, so their times are cut to be alike.
constexpr std::int64_t kAlike = 100'000;  // µs

using Words = std::vector<std::string>;

/// A command, or the words of one ticket for the script, and who waits for the reply.
struct Job {
  std::string verb;  ///< of the script; empty: a command
  std::string key;   ///< the ticket
  Words words;
  std::function<void(const redisReply* reply)> done;  ///< of a command; null: there is no reply
  Tickets::Moved moved;                               ///< of a ticket

  void tell_nothing() const {
    if (verb.empty()) {
      done(nullptr);
    } else {
      moved(false, std::nullopt);
    }
  }
};

class RedisTickets final : public Tickets {
 public:
  RedisTickets(std::unique_ptr<TicketServers> servers, RedisTicketsOptions options)
      : options_(std::move(options)), servers_(std::move(servers)), thread_([this] { run(); }) {}

  static const store::redis::Script& script() {
    static const store::redis::Script kMade = store::redis::script_of(std::string(kTicketScript));
    return kMade;
  }

  RedisTickets(const RedisTickets&) = delete;
  RedisTickets& operator=(const RedisTickets&) = delete;
  ~RedisTickets() override {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  void create(std::string id, Ticket ticket, milliseconds life, Created done) override {
    ticket.state = TicketState::queued;
    submit(command({"SET", key_of(id), to_line(ticket), "PX", std::to_string(life.count()), "NX"},
                   [done = std::move(done)](const redisReply* reply) {
                     done(reply != nullptr && reply->type != REDIS_REPLY_ERROR);
                   }));
  }

  void get(std::string id, Got done) override {
    // MGET, as it takes what is no text for nothing.
    submit(command({"MGET", key_of(id)}, [done = std::move(done)](const redisReply* reply) {
      const bool reached = reply != nullptr && reply->type == REDIS_REPLY_ARRAY && reply->elements == 1;
      done(reached, reached ? parse_ticket(text_of(*reply->element[0])) : std::nullopt);
    }));
  }

  void claim(std::string id, std::string queue, milliseconds life, Moved done) override {
    Ticket ticket;
    ticket.queue = std::move(queue);
    ticket.state = TicketState::running;
    ticket.created_us = utc_us() / kAlike * kAlike;
    ticket.attempts = 1;
    const milliseconds whole = std::chrono::ceil<std::chrono::minutes>(life);
    call_script(id, "claim", {std::to_string(whole.count()), to_line(ticket)}, std::move(done));
  }

  void add_attempts(std::string id, int more) override {
    call_script(id, "tried", {std::to_string(more)}, [](bool /*reached*/, std::optional<TicketState> /*before*/) {});
  }

  void cancel(std::string id, std::string reason, milliseconds life, Moved done) override {
    finish(std::move(id), TicketState::cancelled, 0, std::move(reason), life, std::move(done));
  }

  void refuse(std::string id, Ticket ticket, milliseconds life, Moved done) override {
    ticket.state = TicketState::cancelled;
    call_script(id, "refuse", {std::to_string(life.count()), to_line(ticket)}, std::move(done));
  }

  void finish(std::string id, TicketState state, int status, std::string reason, std::optional<milliseconds> life,
              Moved done) override {
    std::string ending = status_text(status);
    // Such an end changes the head alone.
    if (!life && reason.empty() && ending.size() == kOpenStatus.size()) life = milliseconds(0);
    call_script(id, std::string(1, letter_of(state)),
                {std::to_string(life.value_or(kTicketAfterlife).count()), std::move(ending), reason_text(reason)},
                std::move(done));
  }

  void report(std::string queue, std::string drainer, DrainReport added) override {
    const std::string key = options_.prefix + "queue:" + queue;
    const auto ignore = [](const redisReply*) {};
    const auto count = [&](const char* name, std::uint64_t n) {
      if (n != 0) submit(command({"HINCRBY", key, name, std::to_string(n)}, ignore));
    };
    count("delivered", added.delivered);
    count("duplicates", added.duplicates);
    count("dead", added.dead);
    count("expired", added.expired);
    count("foreign", added.foreign);
    submit(
        command({"HSET", key, "drainer:" + drainer,
                 std::to_string(utc_us()) + " " + std::to_string(added.held) + " " + std::to_string(added.oldest_us)},
                ignore));
    submit(command({"PEXPIRE", key, std::to_string(kReportLife.count())}, ignore));
  }

  void read_report(std::string queue, Told done) override {
    submit(command({"HGETALL", options_.prefix + "queue:" + queue}, [done = std::move(done)](const redisReply* reply) {
      const bool reached = reply != nullptr && reply->type == REDIS_REPLY_ARRAY;
      done(reached, reached ? report_of(*reply) : DrainReport());
    }));
  }

 private:
  /// In a cluster, tickets whose ids begin alike lie together, so that one call changes many.
  [[nodiscard]] std::string key_of(const std::string& id) const {
    if (!servers_->is_cluster()) return options_.prefix + "ticket:" + id;
    return options_.prefix + "ticket:{" + id.substr(0, 1) + "}" + id.substr(1);
  }

  static Job command(Words words, std::function<void(const redisReply* reply)> done) {
    return {.verb = {}, .key = {}, .words = std::move(words), .done = std::move(done), .moved = {}};
  }

  void call_script(const std::string& id, std::string verb, Words words, Moved done) {
    submit(
        {.verb = std::move(verb), .key = key_of(id), .words = std::move(words), .done = {}, .moved = std::move(done)});
  }

  void submit(Job job) {
    {
      const std::scoped_lock lock(mutex_);
      if (!stopping_ && jobs_.size() < kMostWaiting) {
        jobs_.push_back(std::move(job));
        if (jobs_.size() == (gathers_ ? kMostTogether : 1)) changed_.notify_one();
        return;
      }
    }
    job.tell_nothing();
  }

  void run() {
    std::vector<Job> batch;
    auto next = std::chrono::steady_clock::now();
    while (true) {
      {
        std::unique_lock lock(mutex_);
        gathers_ = true;
        changed_.wait_until(lock, next, [this] { return stopping_ || jobs_.size() >= kMostTogether; });
        gathers_ = false;
        changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
        if (jobs_.empty()) return;
        next = std::chrono::steady_clock::now() + kPace;
        while (!jobs_.empty() && batch.size() < kBatch) {
          batch.push_back(std::move(jobs_.front()));
          jobs_.pop_front();
        }
      }
      carry_out(std::exchange(batch, {}));
    }
  }

  void carry_out(std::vector<Job> batch) {
    if (!servers_->is_cluster()) {
      carry_out(std::move(batch), 0);
      return;
    }
    // Those of a ticket stay in order, as they have one slot.
    std::map<std::uint16_t, std::vector<Job>> by_slot;
    for (Job& job : batch) {
      const std::string& key = job.verb.empty() ? job.words[1] : job.key;
      by_slot[store::redis::key_slot(key)].push_back(std::move(job));
    }
    for (auto& [slot, jobs] : by_slot) carry_out(std::move(jobs), slot);
  }

  void carry_out(std::vector<Job> jobs, std::uint16_t slot) {
    std::optional<store::redis::Redirect> redirect;
    for (int hop = 0; hop < kMostHops && !jobs.empty(); ++hop) {
      if (redirect && redirect->kind == store::redis::Redirect::Kind::ask) {
        // The other node takes one command each time that it is told so.
        const auto end = jobs.begin() + static_cast<std::ptrdiff_t>(together(jobs));
        const std::vector<Job> first(std::move_iterator(jobs.begin()), std::move_iterator(end));
        jobs.erase(jobs.begin(), end);
        TicketLink* link = servers_->follow(*redirect);
        if (link == nullptr) {
          fail(first);
        } else {
          fail(send(*link, first, redirect));
        }
        continue;
      }
      TicketLink* link = redirect ? servers_->follow(*redirect) : servers_->link_to(slot);
      redirect.reset();
      if (link == nullptr) break;
      jobs = send(*link, jobs, redirect);
      if (!redirect) return;
    }
    fail(jobs);
  }

  /// A call without a reply may have been carried out: each is such that asking again is harmless, but whether to is
  /// the caller's to say.
  static void fail(std::span<const Job> jobs) {
    for (const Job& job : jobs) job.tell_nothing();
  }

  /// Jobs from the first on that one command does: tickets that change alike.
  static std::size_t together(std::span<const Job> jobs) {
    std::size_t count = 1;
    while (count < std::min(jobs.size(), kMostTogether) && !jobs[0].verb.empty() && jobs[count].verb == jobs[0].verb) {
      ++count;
    }
    return count;
  }

  /// Gives back those that the node has sent elsewhere, which none of them was carried out by.
  std::vector<Job> send(TicketLink& link, std::span<const Job> jobs, std::optional<store::redis::Redirect>& redirect) {
    std::vector<Job> elsewhere;
    std::vector<std::size_t> counts;
    for (std::size_t first = 0; first < jobs.size(); first += counts.back()) {
      counts.push_back(together(jobs.subspan(first)));
      append(link, jobs.subspan(first, counts.back()));
    }
    std::string broken;
    for (const std::size_t count : counts) {
      const std::span<const Job> those = jobs.first(count);
      jobs = jobs.subspan(count);
      store::redis::Reply reply;
      if (broken.empty()) reply = link.receive();
      if (reply == nullptr) {
        if (broken.empty()) broken = link.problem();
        fail(those);
        continue;
      }
      const std::string_view error = reply->type == REDIS_REPLY_ERROR ? text_of(*reply) : std::string_view();
      if (const auto found = store::redis::parse_redirect(error)) {
        redirect = found;
        elsewhere.insert(elsewhere.end(), those.begin(), those.end());
        continue;
      }
      tell(those, *reply);
      if (error.starts_with("NOSCRIPT")) broken = "it has forgotten the script";
      if (error.find("READONLY") != std::string_view::npos) broken = "it is a replica";
    }
    if (!broken.empty()) servers_->drop(link, broken);
    return elsewhere;
  }

  static void tell(std::span<const Job> jobs, const redisReply& reply) {
    if (jobs[0].verb.empty()) {
      jobs[0].done(&reply);
      return;
    }
    const std::string_view letters = reply.type == REDIS_REPLY_STRING ? text_of(reply) : std::string_view();
    if (letters.size() != jobs.size()) {
      fail(jobs);
      return;
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].moved(true, state_of(letters[i]));
  }

  static void append(TicketLink& link, std::span<const Job> jobs) {
    const Words& words = jobs[0].words;
    if (jobs[0].verb.empty()) {
      link.append(words);
      return;
    }
    const bool alike = std::ranges::all_of(jobs, [&](const Job& job) { return job.words == words; });
    const std::span<const Job> with_words = alike ? jobs.first(1) : jobs;
    link.begin(5 + jobs.size() + with_words.size() * words.size());
    for (const std::string_view word : {std::string_view("EVALSHA"), std::string_view(script().sha1)}) {
      link.append_word(word);
    }
    link.append_word(std::to_string(jobs.size()));
    for (const Job& job : jobs) link.append_word(job.key);
    link.append_word(jobs[0].verb);
    link.append_word(std::to_string(words.size()));
    for (const Job& job : with_words) {
      for (const std::string& word : job.words) link.append_word(word);
    }
  }

  const RedisTicketsOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool gathers_ = false;  ///< the thread waits for more than one
  bool stopping_ = false;
  const std::unique_ptr<TicketServers> servers_;  ///< the thread's own
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Tickets>> make_redis_tickets(const RedisTicketsOptions& options) {
  auto resolved = store::redis::resolve_target(options.url, options.access);
  if (!resolved) return resolved.error();
  auto servers =
      TicketServers::create(*std::move(resolved), options.access.tls, RedisTickets::script(), options.timeout);
  if (!servers) return servers.error();
  return std::unique_ptr<Tickets>(std::make_unique<RedisTickets>(*std::move(servers), options));
}

}  // namespace sluice::queue
