#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "queue/tickets.h"

namespace sluice::queue {
namespace {

using Clock = std::chrono::steady_clock;

class MemoryTickets final : public Tickets {
 public:
  explicit MemoryTickets(std::size_t most) : most_(most) {}

  void create(std::string id, Ticket ticket, std::chrono::milliseconds life, Created done) override {
    bool has_room = true;
    {
      const std::scoped_lock lock(mutex_);
      drop_ended();
      has_room = tickets_.size() < most_ || tickets_.contains(id);
      if (has_room) keep(tickets_.try_emplace(id, Held{std::move(ticket), {}}).first, life);
    }
    done(has_room);
  }

  void get(std::string id, Got done) override {
    std::optional<Ticket> ticket;
    {
      const std::scoped_lock lock(mutex_);
      drop_ended();
      if (const auto found = tickets_.find(id); found != tickets_.end()) ticket = found->second.ticket;
    }
    done(true, std::move(ticket));
  }

  void claim(std::string id, std::string queue, std::chrono::milliseconds life, Moved done) override {
    std::optional<TicketState> before;
    {
      const std::scoped_lock lock(mutex_);
      drop_ended();
      const auto [found, is_new] = tickets_.try_emplace(id);
      Ticket& ticket = found->second.ticket;
      if (is_new) {
        ticket.queue = std::move(queue);
      } else {
        before = ticket.state;
      }
      if (ticket.state == TicketState::queued || ticket.state == TicketState::running) {
        ticket.state = TicketState::running;
        ++ticket.attempts;
      }
      keep(found, life);
    }
    done(true, before);
  }

  void add_attempts(std::string id, int more) override {
    const std::scoped_lock lock(mutex_);
    const auto found = tickets_.find(id);
    if (found == tickets_.end() || found->second.ticket.state != TicketState::running) return;
    Ticket& ticket = found->second.ticket;
    ticket.attempts += static_cast<std::uint32_t>(more);
    if (ticket.attempts == 0) ticket.state = TicketState::queued;
  }

  void cancel(std::string id, std::string reason, std::chrono::milliseconds life, Moved done) override {
    move(id, TicketState::cancelled, 0, std::move(reason), life, done);
  }

  void refuse(std::string id, Ticket ticket, std::chrono::milliseconds life, Moved done) override {
    std::optional<TicketState> before;
    {
      const std::scoped_lock lock(mutex_);
      drop_ended();
      const auto [found, is_new] = tickets_.try_emplace(id);
      if (!is_new) before = found->second.ticket.state;
      if (is_new || before == TicketState::queued) {
        found->second.ticket = std::move(ticket);
        found->second.ticket.state = TicketState::cancelled;
        keep(found, life);
      }
    }
    done(true, before);
  }

  void finish(std::string id, TicketState state, int status, std::string reason,
              std::optional<std::chrono::milliseconds> life, Moved done) override {
    move(id, state, status, std::move(reason), life, done);
  }

  void report(std::string queue, std::string drainer, DrainReport added) override {
    const std::scoped_lock lock(mutex_);
    Reports& reports = reports_[queue];
    reports.sum.delivered += added.delivered;
    reports.sum.duplicates += added.duplicates;
    reports.sum.dead += added.dead;
    reports.sum.expired += added.expired;
    reports.sum.foreign += added.foreign;
    reports.last[drainer] = added;
  }

  void read_report(std::string queue, Told done) override {
    DrainReport report;
    {
      const std::scoped_lock lock(mutex_);
      const Reports& reports = reports_[queue];
      report = reports.sum;
      for (const auto& [drainer, last] : reports.last) {
        ++report.drainers;
        report.held += last.held;
        if (last.oldest_us != 0 && (report.oldest_us == 0 || last.oldest_us < report.oldest_us)) {
          report.oldest_us = last.oldest_us;
        }
      }
    }
    done(true, report);
  }

 private:
  struct Held {
    Ticket ticket;
    Clock::time_point ends;
  };
  struct Reports {
    DrainReport sum;
    std::unordered_map<std::string, DrainReport> last;
  };
  using Map = std::unordered_map<std::string, Held>;

  void move(const std::string& id, TicketState to, int status, std::string reason,
            std::optional<std::chrono::milliseconds> life, const Moved& done) {
    std::optional<TicketState> before;
    {
      const std::scoped_lock lock(mutex_);
      drop_ended();
      const auto found = tickets_.find(id);
      if (found != tickets_.end()) {
        Ticket& ticket = found->second.ticket;
        before = ticket.state;
        const bool moves = ticket.state == TicketState::queued ||
                           (ticket.state == TicketState::running && to != TicketState::cancelled);
        if (moves) {
          ticket.state = to;
          ticket.status = status;
          ticket.reason = std::move(reason);
          if (life) keep(found, *life);
        }
      }
    }
    done(true, before);
  }

  void keep(Map::iterator held, std::chrono::milliseconds life) {
    held->second.ends = Clock::now() + life;
    ends_.emplace_back(held->second.ends, held->first);
  }

  /// Lives differ between tickets, so one may stay a little beyond its own; never below it.
  void drop_ended() {
    const auto now = Clock::now();
    while (!ends_.empty() && ends_.front().first <= now) {
      const auto found = tickets_.find(ends_.front().second);
      if (found != tickets_.end() && found->second.ends <= now) tickets_.erase(found);
      ends_.pop_front();
    }
  }

  const std::size_t most_;
  std::mutex mutex_;
  Map tickets_;
  std::deque<std::pair<Clock::time_point, std::string>> ends_;
  std::unordered_map<std::string, Reports> reports_;
};

}  // namespace

std::unique_ptr<Tickets> make_memory_tickets(std::size_t most) { return std::make_unique<MemoryTickets>(most); }

}  // namespace sluice::queue
