#include <hiredis/hiredis.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

#include "base/log.h"
#include "queue/tickets.h"
#include "store/redis/url.h"

namespace sluice::queue {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

// One kind of change, of many tickets: KEYS are hashes. ARGV: what is done, how many words each ticket has, and these
// words, of which the first is its life in ms. Answers their states before, or empty texts.
constexpr std::string_view kScript = R"(
local verb = ARGV[1]
local words = tonumber(ARGV[2])
local states = {}
for i, key in ipairs(KEYS) do
  local at = 3 + (i - 1) * words
  local before = redis.call('HGET', key, 'state')
  local open = before == 'queued' or before == 'running'
  local changes = true
  states[i] = before or ''
  if verb == 'create' then
    changes = not before
    if changes then
      redis.call('HSET', key, 'state', 'queued', 'queue', ARGV[at + 1], 'created', ARGV[at + 2], 'expected', ARGV[at + 3],
                 'place', ARGV[at + 4])
    end
  elseif verb == 'claim' then
    changes = open or not before
    if not before then
      redis.call('HSET', key, 'state', 'running', 'queue', ARGV[at + 1], 'created', ARGV[at + 2], 'attempts', 1)
    elseif open then
      redis.call('HSET', key, 'state', 'running')
      redis.call('HINCRBY', key, 'attempts', 1)
    end
  elseif verb == 'cancel' then
    changes = before == 'queued'
    if changes then redis.call('HSET', key, 'state', 'cancelled', 'reason', ARGV[at + 1]) end
  else
    changes = open
    if open then redis.call('HSET', key, 'state', verb, 'status', ARGV[at + 1], 'reason', ARGV[at + 2]) end
  end
  if changes then redis.call('PEXPIRE', key, ARGV[at]) end
end
return states
)";

/// Calls that may wait for the connection. More are refused: the store has fallen behind.
constexpr std::size_t kMostWaiting = 100'000;
constexpr std::size_t kBatch = 1024;
/// Most tickets that one script changes: nothing else is served meanwhile, for about 5 µs each.
constexpr std::size_t kMostTogether = 128;
constexpr milliseconds kReportLife = std::chrono::hours(24);
constexpr std::int64_t kReportAge = 10'000'000;  // µs; older ones are of drainers that have ended

struct ReplyDeleter {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, ReplyDeleter>;

struct ContextDeleter {
  void operator()(redisContext* context) const { redisFree(context); }
};

std::string_view text_of(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_STRING && reply.type != REDIS_REPLY_STATUS && reply.type != REDIS_REPLY_ERROR)
    return {};
  return {reply.str, static_cast<std::size_t>(reply.len)};
}

template <typename T>
T number_of(std::string_view text) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::int64_t utc_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

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

Ticket ticket_of(const redisReply& reply) {
  Ticket ticket;
  for (std::size_t i = 0; i + 1 < reply.elements; i += 2) {
    const std::string_view name = text_of(*reply.element[i]);
    const std::string_view value = text_of(*reply.element[i + 1]);
    if (name == "state") ticket.state = ticket_state(value).value_or(TicketState::queued);
    if (name == "queue") ticket.queue = value;
    if (name == "created") ticket.created_us = number_of<std::int64_t>(value);
    if (name == "expected") ticket.expected_us = number_of<std::int64_t>(value);
    if (name == "place") ticket.place = number_of<std::uint64_t>(value);
    if (name == "attempts") ticket.attempts = number_of<std::uint32_t>(value);
    if (name == "status") ticket.status = number_of<int>(value);
    if (name == "reason") ticket.reason = value;
  }
  return ticket;
}

/// "time held oldest" of one drainer.
void add_drainer(std::string_view text, DrainReport& report) {
  const std::size_t first = text.find(' ');
  const std::size_t second = text.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return;
  if (utc_us() - number_of<std::int64_t>(text) > kReportAge) return;
  ++report.drainers;
  report.held += number_of<std::uint64_t>(text.substr(first + 1));
  const auto oldest = number_of<std::int64_t>(text.substr(second + 1));
  if (oldest != 0 && (report.oldest_us == 0 || oldest < report.oldest_us)) report.oldest_us = oldest;
}

DrainReport report_of(const redisReply& reply) {
  DrainReport report;
  for (std::size_t i = 0; i + 1 < reply.elements; i += 2) {
    const std::string_view name = text_of(*reply.element[i]);
    const std::string_view value = text_of(*reply.element[i + 1]);
    if (name == "delivered") report.delivered = number_of<std::uint64_t>(value);
    if (name == "duplicates") report.duplicates = number_of<std::uint64_t>(value);
    if (name == "dead") report.dead = number_of<std::uint64_t>(value);
    if (name == "expired") report.expired = number_of<std::uint64_t>(value);
    if (name == "foreign") report.foreign = number_of<std::uint64_t>(value);
    if (name.starts_with("drainer:")) add_drainer(value, report);
  }
  return report;
}

/// How the script is named to a server that has seen it.
std::string digest_of_script() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(kScript.data(), kScript.size(), digest.data(), &size, EVP_sha1(), nullptr);
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    text += digits[digest.at(i) >> 4U];
    text += digits[digest.at(i) & 15U];
  }
  return text;
}

class RedisTickets final : public Tickets {
 public:
  RedisTickets(store::redis::Target target, RedisTicketsOptions options)
      : target_(std::move(target)),
        server_(target_.nodes.front()),
        options_(std::move(options)),
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
        const bool forgotten = text_of(*reply).starts_with("NOSCRIPT");
        tell(batch.subspan(answered, count), *reply);
        answered += count;
        if (forgotten) drop("it has forgotten the script");
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
    Words words{"EVALSHA", script_, std::to_string(jobs.size())};
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
    const timeval timeout = to_timeval(options_.timeout);
    context_.reset(server_.host.empty() ? redisConnectUnixWithTimeout(server_.path.c_str(), timeout)
                                        : redisConnectWithTimeout(server_.host.c_str(), server_.port, timeout));
    if (context_ == nullptr || context_->err != 0) {
      drop(context_ == nullptr ? "no memory" : context_->errstr);
      return false;
    }
    redisSetTimeout(context_.get(), timeout);
    if (!target_.password.empty()) {
      Words words{"AUTH"};
      if (!target_.user.empty()) words.push_back(target_.user);
      words.push_back(target_.password);
      if (!greet(words)) return false;
    }
    if (target_.database != 0 && !greet({"SELECT", std::to_string(target_.database)})) return false;
    if (!greet({"SCRIPT", "LOAD", std::string(kScript)})) return false;
    if (std::exchange(down_, false)) log::info("tickets: Redis answers again");
    return true;
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
  const store::redis::Address server_;
  const RedisTicketsOptions options_;
  const std::string script_ = digest_of_script();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool stopping_ = false;
  // The thread's own.
  std::unique_ptr<redisContext, ContextDeleter> context_;
  Steady::time_point retry_at_;
  bool down_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Tickets>> make_redis_tickets(const RedisTicketsOptions& options) {
  auto target = store::redis::parse_url(options.url);
  if (!target) return target.error();
  if (target->tls || target->topology != store::redis::Topology::standalone) {
    return Error{"tickets are kept on one Redis server without TLS; found " + target->to_text()};
  }
  return std::unique_ptr<Tickets>(std::make_unique<RedisTickets>(*std::move(target), options));
}

}  // namespace sluice::queue
