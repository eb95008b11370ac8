#include "limiter/hold.h"

#include <algorithm>
#include <array>
#include <boost/crc.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "identity/base64url.h"
#include "store/limit_ids.h"

namespace sluice::limiter {
namespace {

constexpr char kVersion = 3;
constexpr std::size_t kSumBytes = 4;
constexpr std::array<std::chrono::seconds, 4> kLives{std::chrono::seconds(10), std::chrono::seconds(60),
                                                     std::chrono::seconds(600), std::chrono::seconds(3'600)};
constexpr std::size_t kMostDescriptors = 100;
constexpr std::size_t kMostEntries = 1'000;  // of one descriptor
constexpr std::size_t kLongestPlace = 200;   // see store::Charge::key

std::uint32_t sum_of(std::string_view bytes) {
  boost::crc_32_type sum;
  sum.process_bytes(bytes.data(), bytes.size());
  return sum.checksum();
}

/// As keys are written: nothing that has a meaning of its own in the names of a store.
bool is_place(std::string_view text) {
  return text.size() <= kLongestPlace &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~' && c != '|' && c != '{' && c != '}'; });
}

class Writer {
 public:
  void number(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<char>(value | 0x80U));
      value >>= 7U;
    }
    bytes_.push_back(static_cast<char>(value));
  }
  void text(std::string_view value) {
    number(value.size());
    bytes_ += value;
  }
  std::string finish() {
    std::uint32_t sum = sum_of(bytes_);
    for (std::size_t i = 0; i < kSumBytes; ++i, sum >>= 8U) bytes_.push_back(static_cast<char>(sum));
    return identity::encode_base64url(bytes_);
  }

 private:
  std::string bytes_{kVersion};
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; ok_ && shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  std::size_t count(std::size_t most) {
    const std::uint64_t value = number();
    if (value > most) ok_ = false;
    return ok_ ? static_cast<std::size_t>(value) : 0;
  }
  std::string text() {
    const std::size_t size = count(rest_.size());
    if (size > rest_.size()) ok_ = false;
    if (!ok_) return {};
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace

std::string to_text(const Hold& hold) {
  Writer out;
  out.number(static_cast<std::uint64_t>(hold.kind));
  out.text(hold.domain);
  if (hold.kind == Hold::Kind::reservation) {
    out.number(hold.cost);
    out.number(hold.lease);
    out.text(hold.place);
    out.number(hold.life);
    out.number(static_cast<std::uint64_t>(hold.charged_at));
    out.number(static_cast<std::uint64_t>(hold.expires_at));
  }
  out.number(hold.descriptors.size());
  for (const Hold::Descriptor& descriptor : hold.descriptors) {
    if (hold.kind == Hold::Kind::lease) {
      out.number(descriptor.cost);
      out.number(descriptor.lease);
    }
    out.number(descriptor.mark);
    out.number(descriptor.entries.size());
    for (const auto& [key, value] : descriptor.entries) {
      out.text(key);
      out.text(value);
    }
  }
  return out.finish();
}

bool has_too_long_text(const Request& request) {
  constexpr std::size_t longest_number = 10;
  constexpr std::size_t longest_length = 3;  // of what is within kLongestHold
  constexpr std::size_t head = 2 + kSumBytes + longest_length + 6 * longest_number + kLongestPlace;
  if (request.descriptors.size() > kMostDescriptors) return true;
  std::size_t bytes = head + request.domain.size();
  for (const Descriptor& descriptor : request.descriptors) {
    if (descriptor.entries.size() > kMostEntries) return true;
    bytes += 4 * longest_number;
    for (const Entry& entry : descriptor.entries) bytes += 2 * longest_length + entry.key.size() + entry.value.size();
  }
  return bytes > kLongestHold / 4 * 3;  // as base64url
}

bool from_text(std::string_view text, Hold& hold) {
  std::string bytes;
  if (!identity::decode_base64url(text, bytes) || bytes.size() < 1 + kSumBytes || bytes.front() != kVersion)
    return false;
  const std::string_view summed = std::string_view(bytes).substr(0, bytes.size() - kSumBytes);
  std::uint32_t sum = 0;
  for (std::size_t i = bytes.size(); i > summed.size(); --i) sum = sum << 8U | static_cast<unsigned char>(bytes[i - 1]);
  return sum_of(summed) == sum && from_bytes(summed.substr(1), hold);
}

bool from_bytes(std::string_view bytes, Hold& hold) {
  Reader in(bytes);
  hold = {};
  const std::uint64_t kind = in.number();
  if (!in.ok() || (kind != 1 && kind != 2)) return false;
  hold.kind = static_cast<Hold::Kind>(kind);
  hold.domain = in.text();
  if (hold.kind == Hold::Kind::reservation) {
    hold.cost = in.number();
    hold.lease = in.number();
    hold.place = in.text();
    hold.life = static_cast<std::uint8_t>(in.count(kLives.size() - 1));
    hold.charged_at = static_cast<std::int64_t>(in.number());
    hold.expires_at = static_cast<std::int64_t>(in.number());
  }
  hold.descriptors.resize(in.count(kMostDescriptors));
  for (Hold::Descriptor& descriptor : hold.descriptors) {
    if (hold.kind == Hold::Kind::lease) {
      descriptor.cost = in.number();
      descriptor.lease = in.number();
    }
    descriptor.mark = static_cast<std::uint32_t>(in.count(UINT32_MAX));
    const std::size_t entries = in.count(kMostEntries);
    for (std::size_t i = 0; i < entries && in.ok(); ++i) {
      std::string key = in.text();
      descriptor.entries.emplace_back(std::move(key), in.text());
    }
  }
  const bool in_range = hold.cost <= kMaxTokens && is_place(hold.place) &&
                        std::ranges::all_of(hold.descriptors, [](const auto& one) { return one.cost <= kMaxTokens; });
  return in.ok() && in.at_end() && in_range && !hold.domain.empty() && !hold.descriptors.empty();
}

std::uint32_t counter_mark(const store::Charge& charge) {
  const Limit& numbers = charge.limit->numbers;
  std::string text = charge.limit->identity;
  text.append(" ").append(charge.key);
  const auto add = [&text](auto number) { text.append(" ").append(std::to_string(number)); };
  add(static_cast<int>(numbers.algorithm));
  if (numbers.algorithm == Algorithm::fixed_window) {
    add(static_cast<int>(numbers.align));
    if (numbers.align == Align::calendar) {
      add(static_cast<int>(numbers.calendar.unit));
      add(numbers.calendar.anchor_day);
      text.append(" ").append(numbers.calendar.timezone);
    } else {
      add(numbers.period.count());
    }
  } else if (numbers.algorithm == Algorithm::sliding_window) {
    add(numbers.slots);
    add(numbers.period.count());
  }
  return std::max(1U, sum_of(text));
}

std::uint8_t reservation_life(std::chrono::nanoseconds time) {
  const auto found = std::ranges::find_if(kLives, [time](std::chrono::seconds life) { return time <= life; });
  return static_cast<std::uint8_t>(std::min<std::ptrdiff_t>(found - kLives.begin(), kLives.size() - 1));
}

const store::CountedLimit& reservation_limit(std::uint8_t life) {
  static const std::array<std::unique_ptr<const store::CountedLimit>, kLives.size()> kLimits = [] {
    std::array<std::unique_ptr<const store::CountedLimit>, kLives.size()> made;
    for (std::size_t i = 0; i < kLives.size(); ++i) {
      auto limit = std::make_unique<store::CountedLimit>();
      limit->numbers.algorithm = Algorithm::concurrency;
      limit->numbers.rate = kMaxRate;
      limit->numbers.ttl = kLives[i];
      limit->identity = "reserved;" + std::to_string(kLives[i].count()) + "s";
      limit->id = store::limit_id(limit->identity);
      limit->on_store_failure = OnStoreFailure::local;
      made[i] = std::move(limit);
    }
    return made;
  }();
  return *kLimits[life];
}

}  // namespace sluice::limiter
