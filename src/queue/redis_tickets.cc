#include <hiredis/hiredis.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

#include "base/log.h"
#include "queue/ticket_replies.h"
#include "queue/ticket_script.h"
#include "queue/tickets.h"
#include "store/redis/credentials.h"
#include "store/redis/script.h"
#include "store/redis/url.h"

namespace sluice::queue {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

/// Calls that may wait for the connection. More are refused: the store has fallen behind.
constexpr std::size_t kMostWaiting = 100'000;
constexpr std::size_t kBatch = 1024;
/// Most tickets that one script changes: nothing else is served meanwhile, for about 5 µs each.
constexpr std::size_t kMostTogether = 128;
constexpr milliseconds kReportLife = std::chrono::hours(24);

struct ReplyDeleter {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, ReplyDeleter>;

struct ContextDeleter {
  void operator()(redisContext* context) const { redisFree(context); }
};

timeval to_timeval(milliseconds time) {
  timeval value{};
  value.tv_sec = static_cast<decltype(value.tv_sec)>(time.count() / 1000);
  value.tv_usec = static_cast<decltype(value.tv_usec)>(time.count() % 1000 * 1000);
  return value;
}

using Words = std::vector<std::string>;

/// A command, or the words of one ticket for the script, and who waits for the reply; null: there is none.
struct Job {
  std::string verb;  ///< of the script; empty: a command
  std::string key;   ///< the ticket
  Words words;
  std::function<void(const redisReply* reply)> done;
};

class RedisTickets final : public Tickets {
 public:
  RedisTickets(store::redis::Resolved resolved, RedisTicketsOptions options)
      : target_(std::move(resolved.target)),
        options_(std::move(options)),
        credentials_(std::move(resolved.credentials)),
        sentinel_credentials_(std::move(resolved.sentinel_credentials)),
        thread_([this] { run(); }) {}

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
    call_script(id, "create", life,
                {ticket.queue, std::to_string(ticket.created_us), std::to_string(ticket.expected_us),
                 std::to_string(ticket.place)},
                [done = std::move(done)](bool reached, std::optional<TicketState> /*before*/) { done(reached); });
  }

  void get(std::string id, Got done) override {
    submit(command({"HGETALL", key_of(id)}, [done = std::move(done)](const redisReply* reply) {
      if (reply == nullptr || reply->type != REDIS_REPLY_ARRAY) {
        done(false, std::nullopt);
      } else if (reply->elements == 0) {
        done(true, std::nullopt);
      } else {
        done(true, ticket_of(*reply));
      }
    }));
  }

  void claim(std::string id, std::string queue, milliseconds life, Moved done) override {
    call_script(id, "claim", life, {std::move(queue), std::to_string(utc_us())}, std::move(done));
  }

  void cancel(std::string id, std::string reason, milliseconds life, Moved done) override {
    call_script(id, "cancel", life, {std::move(reason)}, std::move(done));
  }

  void finish(std::string id, TicketState state, int status, std::string reason, milliseconds life,
              Moved done) override {
    call_script(id, std::string(to_text(state)), life, {std::to_string(status), std::move(reason)}, std::move(done));
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
  [[nodiscard]] std::string key_of(const std::string& id) const { return options_.prefix + "ticket:" + id; }

  static Job command(Words words, std::function<void(const redisReply* reply)> done) {
    return {.verb = {}, .key = {}, .words = std::move(words), .done = std::move(done)};
  }

  void call_script(const std::string& id, std::string verb, milliseconds life, Words more, Moved done) {
    more.insert(more.begin(), std::to_string(life.count()));
    submit({.verb = std::move(verb),
            .key = key_of(id),
            .words = std::move(more),
            .done = [done = std::move(done)](const redisReply* reply) {
              if (reply == nullptr || reply->type != REDIS_REPLY_STRING) {
                done(false, std::nullopt);
              } else {
                done(true, ticket_state(text_of(*reply)));
              }
            }});
  }

  void submit(Job job) {
    {
      const std::scoped_lock lock(mutex_);
      if (!stopping_ && jobs_.size() < kMostWaiting) {
        jobs_.push_back(std::move(job));
        if (jobs_.size() == 1) changed_.notify_one();
        return;
      }
    }
    job.done(nullptr);
  }

  void run() {
    std::vector<Job> batch;
    while (true) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
        if (jobs_.empty()) return;
        while (!jobs_.empty() && batch.size() < kBatch) {
          batch.push_back(std::move(jobs_.front()));
          jobs_.pop_front();
        }
      }
      carry_out(batch);
      batch.clear();
    }
  }

  /// Jobs from `first` on that one command does: tickets that change alike.
  static std::size_t together(std::span<const Job> jobs) {
    std::size_t count = 1;
    while (count < std::min(jobs.size(), kMostTogether) && !jobs[0].verb.empty() && jobs[count].verb == jobs[0].verb) {
      ++count;
    }
    return count;
  }

  void carry_out(std::span<const Job> batch) {
    std::vector<std::size_t> counts;
    std::size_t answered = 0;
    if (connect()) {
      for (std::size_t first = 0; first < batch.size(); first += counts.back()) {
        counts.push_back(together(batch.subspan(first)));
        append(batch.subspan(first, counts.back()));
      }
      for (const std::size_t count : counts) {
        const Reply reply = receive();
        if (reply == nullptr) break;
        const std::string_view error = reply->type == REDIS_REPLY_ERROR ? text_of(*reply) : std::string_view();
        const bool forgotten = error.starts_with("NOSCRIPT");
        const bool demoted = error.find("READONLY") != std::string_view::npos;
        tell(batch.subspan(answered, count), *reply);
        answered += count;
        if (forgotten) drop("it has forgotten the script");
        if (demoted) drop("it is a replica");
        if (context_ == nullptr) break;
      }
    }
    // A call without a reply may have been carried out: each is such that asking again is harmless, but whether to is
    // the caller's to say.
    for (; answered < batch.size(); ++answered) batch[answered].done(nullptr);
  }

  static void tell(std::span<const Job> jobs, const redisReply& reply) {
    const bool each = !jobs[0].verb.empty() && reply.type == REDIS_REPLY_ARRAY && reply.elements == jobs.size();
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].done(each ? reply.element[i] : &reply);
  }

  void append(std::span<const Job> jobs) {
    if (jobs[0].verb.empty()) {
      append(jobs[0].words);
      return;
    }
    Words words{"EVALSHA", script_.sha1, std::to_string(jobs.size())};
    for (const Job& job : jobs) words.push_back(job.key);
    words.push_back(jobs[0].verb);
    words.push_back(std::to_string(jobs[0].words.size()));
    for (const Job& job : jobs) words.insert(words.end(), job.words.begin(), job.words.end());
    append(words);
  }

  void append(const Words& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const std::string& word : words) {
      texts.push_back(word.data());
      sizes.push_back(word.size());
    }
    redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(), sizes.data());
  }

  Reply receive() {
    void* reply = nullptr;
    if (redisGetReply(context_.get(), &reply) == REDIS_OK) return Reply(static_cast<redisReply*>(reply));
    drop(context_->errstr);
    return nullptr;
  }

  bool connect() {
    if (context_ != nullptr) return true;
    // Attempts in quick succession help nobody.
    if (Steady::now() < retry_at_) return false;
    const auto server = find_server();
    if (!server || !open(*server) || !log_in(credentials_)) return false;
    if (target_.database != 0 && !greet({"SELECT", std::to_string(target_.database)})) return false;
    if (!greet({"SCRIPT", "LOAD", script_.text})) return false;
    if (std::exchange(down_, false)) log::info("tickets: Redis answers again");
    return true;
  }

  /// The server itself, or the master that a sentinel names.
  std::optional<store::redis::Address> find_server() {
    if (target_.topology == store::redis::Topology::standalone) return target_.nodes.front();
    for (const store::redis::Address& sentinel : target_.nodes) {
      if (!open(sentinel) || !log_in(sentinel_credentials_)) continue;
      append(Words{"SENTINEL", "get-master-addr-by-name", target_.master});
      const Reply reply = receive();
      context_.reset();
      if (reply == nullptr || reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) continue;
      return store::redis::Address{.host = std::string(text_of(*reply->element[0])),
                                   .port = number_of<std::uint16_t>(text_of(*reply->element[1]))};
    }
    drop("no sentinel names the master " + target_.master);
    return std::nullopt;
  }

  bool open(const store::redis::Address& server) {
    const timeval timeout = to_timeval(options_.timeout);
    context_.reset(server.host.empty() ? redisConnectUnixWithTimeout(server.path.c_str(), timeout)
                                       : redisConnectWithTimeout(server.host.c_str(), server.port, timeout));
    if (context_ == nullptr || context_->err != 0) {
      drop(context_ == nullptr ? "no memory" : context_->errstr);
      return false;
    }
    redisSetTimeout(context_.get(), timeout);
    return true;
  }

  bool log_in(store::redis::Credentials& credentials) {
    if (const auto error = credentials.refresh(); error && credentials.password().empty()) {
      drop(error->message);
      return false;
    }
    if (credentials.password().empty()) return true;
    Words words{"AUTH"};
    if (!credentials.user().empty()) words.push_back(credentials.user());
    words.push_back(credentials.password());
    return greet(words);
  }

  bool greet(const Words& words) {
    append(words);
    const Reply reply = receive();
    if (reply == nullptr) return false;
    if (reply->type != REDIS_REPLY_ERROR) return true;
    drop(std::string(text_of(*reply)));
    return false;
  }

  void drop(const std::string& why) {
    if (!std::exchange(down_, true)) log::warn("tickets: Redis does not answer", {{"reason", why}});
    context_.reset();
    retry_at_ = Steady::now() + milliseconds(200);
  }

  const store::redis::Target target_;
  const RedisTicketsOptions options_;
  const store::redis::Script script_ = store::redis::script_of(std::string(kTicketScript));
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool stopping_ = false;
  // The thread's own.
  store::redis::Credentials credentials_;
  store::redis::Credentials sentinel_credentials_;
  std::unique_ptr<redisContext, ContextDeleter> context_;
  Steady::time_point retry_at_;
  bool down_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Tickets>> make_redis_tickets(const RedisTicketsOptions& options) {
  auto resolved = store::redis::resolve_target(options.url, options.access);
  if (!resolved) return resolved.error();
  const store::redis::Target& target = resolved->target;
  if (target.tls || resolved->sentinel_over_tls || target.topology == store::redis::Topology::cluster) {
    return Error{"tickets of queues are kept on one Redis server, which sentinels may name, without TLS; found " +
                 target.to_text()};
  }
  return std::unique_ptr<Tickets>(std::make_unique<RedisTickets>(*std::move(resolved), options));
}

}  // namespace sluice::queue
