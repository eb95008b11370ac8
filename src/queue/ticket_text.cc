#include "queue/ticket_text.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

namespace sluice::queue {
namespace {

constexpr std::size_t kAttemptDigits = 10;
constexpr std::size_t kStatusDigits = kOpenStatus.size();

std::string padded(const std::string& digits, std::size_t width) {
  return std::string(width - std::min(digits.size(), width), '0') + digits;
}

/// Takes what stands before the next space, and the space.
std::string_view take_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

template <typename T>
bool take_number(std::string_view& text, T& number) {
  const std::string_view word = take_word(text);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size();
}

}  // namespace

char letter_of(TicketState state) { return to_text(state).front(); }

std::optional<TicketState> state_of(char letter) {
  for (const TicketState state : {TicketState::queued, TicketState::running, TicketState::done, TicketState::failed,
                                  TicketState::expired, TicketState::cancelled}) {
    if (letter_of(state) == letter) return state;
  }
  return std::nullopt;
}

std::string status_text(int status) {
  // A sign stands before the zeros.
  const std::string digits = std::to_string(status);
  return status < 0 ? "-" + padded(digits.substr(1), kStatusDigits - 1) : padded(digits, kStatusDigits);
}

std::string reason_text(std::string_view reason) { return reason.empty() ? "" : " " + std::string(reason); }

std::string to_line(const Ticket& ticket) {
  std::string line(1, letter_of(ticket.state));
  for (const std::string& word :
       {padded(std::to_string(ticket.attempts), kAttemptDigits), status_text(ticket.status), ticket.queue,
        std::to_string(ticket.created_us), std::to_string(ticket.expected_us), std::to_string(ticket.place)}) {
    line += ' ';
    line += word;
  }
  return line + reason_text(ticket.reason);
}

std::optional<Ticket> parse_ticket(std::string_view line) {
  const std::string_view letter = take_word(line);
  const std::optional<TicketState> state = letter.size() == 1 ? state_of(letter.front()) : std::nullopt;
  Ticket ticket;
  if (!state || line.find(' ') != kAttemptDigits || !take_number(line, ticket.attempts)) return std::nullopt;
  const std::size_t status_end = line.find(' ');
  if (status_end == std::string_view::npos || status_end < kStatusDigits || !take_number(line, ticket.status)) {
    return std::nullopt;
  }
  ticket.state = *state;
  ticket.queue = take_word(line);
  if (!take_number(line, ticket.created_us) || !take_number(line, ticket.expected_us) ||
      !take_number(line, ticket.place)) {
    return std::nullopt;
  }
  ticket.reason = line;
  return ticket;
}

}  // namespace sluice::queue
