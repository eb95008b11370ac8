#include "queue/ticket_link.h"

#include "store/redis/resp_writer.h"

namespace sluice::queue {

// NOLINTNEXTLINE(bugprone-exception-escape): what is left to run has been cancelled, and does not throw.
TicketLink::~TicketLink() {
  if (wire_ != nullptr) wire_->close();
  wire_.reset();
  // What was cancelled holds the wire until it has been told so.
  io_.restart();
  io_.poll();
}

bool TicketLink::open(const store::redis::Address& address, store::redis::Tls* tls) {
  store::redis::Wire::Owner& owner = *this;
  wire_ = std::make_shared<store::redis::Wire>(io_, owner);
  wire_->open(address, tls);
  if (run_until([this] { return is_open_; })) return true;
  problem_ = address.to_text() + ": " + problem_;
  return false;
}

void TicketLink::append(std::span<const std::string> words) {
  begin(words.size());
  for (const std::string& word : words) append_word(word);
}

void TicketLink::begin(std::size_t words) { store::redis::append_command(output_, words); }

void TicketLink::append_word(std::string_view word) { store::redis::append_bulk(output_, word); }

store::redis::Reply TicketLink::receive() {
  store::redis::Reply reply;
  const bool came = run_until([&] {
    if (!is_writing_ && !output_.empty()) {
      is_writing_ = true;
      wire_->write(output_);
    }
    reply = reader_.next();
    return reply != nullptr || reader_.failed();
  });
  if (came && reply == nullptr) problem_ = "it does not speak the Redis protocol";
  return reply;
}

void TicketLink::wire_failed(std::string_view why) {
  has_failed_ = true;
  problem_ = why.empty() ? "it cannot be reached, or has ended the connection" : std::string(why);
}

template <typename Done>
bool TicketLink::run_until(Done is_done) {
  const auto end = std::chrono::steady_clock::now() + timeout_;
  while (!is_done()) {
    if (has_failed_) return false;
    io_.restart();
    if (io_.run_one_until(end) == 0) {
      problem_ = "it has not answered in time";
      return false;
    }
  }
  return true;
}

}  // namespace sluice::queue
