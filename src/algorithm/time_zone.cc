#include "algorithm/time_zone.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "algorithm/posix_zone_rule.h"

namespace sluice::algorithm {

namespace {

constexpr std::int64_t kBeforeAll = std::numeric_limits<std::int64_t>::min();
constexpr int kFirstYear = 1970;
constexpr int kLastYear = 2'263;
constexpr std::int64_t kLargestOffset = 26L * 3'600;  // RFC 8536: within -25 … 26 hours
constexpr std::size_t kMostBytes = 1U << 20U;

// The big-endian numbers of a TZif file.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] bool has(std::size_t count) const { return rest_.size() >= count; }
  void skip(std::size_t count) { rest_.remove_prefix(count); }
  [[nodiscard]] std::string_view rest() const { return rest_; }
  // Precondition: has(size).
  std::int64_t number(std::size_t size) {
    // Sign-extended from the first byte.
    std::uint64_t value = (static_cast<std::uint8_t>(rest_.front()) & 0x80U) != 0 ? ~std::uint64_t{0} : 0;
    for (const char byte : rest_.substr(0, size)) value = value << 8U | static_cast<std::uint8_t>(byte);
    rest_.remove_prefix(size);
    return static_cast<std::int64_t>(value);
  }

 private:
  std::string_view rest_;
};

struct Header {
  char version = 0;
  std::size_t utc_flags = 0;
  std::size_t standard_flags = 0;
  std::size_t leaps = 0;
  std::size_t times = 0;
  std::size_t types = 0;
  std::size_t characters = 0;
  [[nodiscard]] std::size_t body_size(std::size_t time_size) const {
    return times * (time_size + 1) + types * 6 + characters + leaps * (time_size + 4) + standard_flags + utc_flags;
  }
};

std::optional<Header> read_header(Bytes& bytes) {
  constexpr std::size_t kSize = 44;
  constexpr std::size_t kReserved = 15;
  if (!bytes.has(kSize) || bytes.rest().substr(0, 4) != "TZif") return std::nullopt;
  Header header;
  header.version = bytes.rest()[4];
  bytes.skip(5 + kReserved);
  for (std::size_t* count :
       {&header.utc_flags, &header.standard_flags, &header.leaps, &header.times, &header.types, &header.characters}) {
    const std::int64_t value = bytes.number(4);
    if (value < 0 || static_cast<std::size_t>(value) > kMostBytes) return std::nullopt;
    *count = static_cast<std::size_t>(value);
  }
  return header;
}

Error malformed() { return Error{"not a time zone file of version 2 or later"}; }

std::string read_file(const std::string& path) {
  std::string bytes;
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return bytes;
  std::ifstream file(path, std::ios::binary);
  if (file) bytes.assign(std::istreambuf_iterator<char>(file), {});
  return file.bad() ? std::string() : bytes;
}

// A name is a path below the database's folder, so it must not lead out of it.
bool is_plain_name(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '+' || c == '/';
  };
  return !name.empty() && name.front() != '/' && std::ranges::all_of(name, plain);
}

// A name that may be anything, as it can be shown: in quotes, cut when long, escaped but for plain ASCII.
std::string shown(std::string_view name) {
  constexpr std::size_t kLongest = 60;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : name.substr(0, kLongest)) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
      text += c;
    } else {
      text.append("\\x").append({kDigits[byte / 16U], kDigits[byte % 16U]});
    }
  }
  return text + (name.size() > kLongest ? "…\"" : "\"");
}

}  // namespace

Result<TimeZone> TimeZone::open(const std::string& name) {
  if (name == "UTC") return TimeZone({{kBeforeAll, 0}});
  if (is_plain_name(name)) {
    const char* configured = std::getenv("TZDIR");  // NOLINT(concurrency-mt-unsafe): nothing here sets variables
    for (const std::string& folder : {std::string(configured != nullptr ? configured : ""),
                                      std::string("/usr/share/zoneinfo"), std::string("/usr/lib/zoneinfo")}) {
      if (folder.empty()) continue;
      const std::string file = read_file(std::string(folder).append("/").append(name));
      if (file.empty()) continue;
      auto zone = parse(file);
      if (!zone) return Error{shown(name) + " is " + zone.error().message};
      zone->share(name);
      return zone;
    }
  }
  return Error{shown(name) + " is not in the system's time zone database"};
}

Result<TimeZone> TimeZone::parse(std::string_view file) {
  if (file.size() > kMostBytes) return malformed();
  Bytes bytes(file);
  const auto old_header = read_header(bytes);
  if (!old_header || old_header->version < '2' || !bytes.has(old_header->body_size(4))) return malformed();
  bytes.skip(old_header->body_size(4));
  const auto header = read_header(bytes);
  if (!header || header->types == 0 || !bytes.has(header->body_size(8))) return malformed();

  Bytes times = bytes;
  Bytes indices = bytes;
  indices.skip(header->times * 8);
  Bytes types = indices;
  types.skip(header->times);
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; i < header->types; ++i) {
    const std::int64_t offset = types.number(4);
    if (offset < -kLargestOffset || offset > kLargestOffset) return malformed();
    offsets.push_back(offset);
    types.skip(2);
  }
  std::vector<Span> spans{{kBeforeAll, offsets.front()}};
  for (std::size_t i = 0; i < header->times; ++i) {
    const std::int64_t start = times.number(8);
    const auto type = static_cast<std::uint8_t>(indices.number(1));
    if (type >= offsets.size() || (i > 0 && start <= spans.back().start)) return malformed();
    spans.push_back({start, offsets[type]});
  }

  bytes.skip(header->body_size(8));
  const std::string_view footer = bytes.rest();
  const std::size_t footer_end = footer.find('\n', 1);
  if (footer.empty() || footer.front() != '\n' || footer_end == std::string_view::npos) return malformed();
  const std::string_view text = footer.substr(1, footer_end - 1);
  if (text.empty()) return TimeZone(std::move(spans));
  const auto rule = parse_posix_zone_rule(text);
  if (!rule) return malformed();
  std::vector<Span> future;
  if (rule->has_daylight) {
    for (int year = kFirstYear; year <= kLastYear; ++year) {
      future.push_back({rule->begin.in_year(year) - rule->standard_offset, rule->daylight_offset});
      future.push_back({rule->end.in_year(year) - rule->daylight_offset, rule->standard_offset});
    }
    std::ranges::sort(future, {}, &Span::start);
  } else if (header->times == 0) {
    spans.front().offset = rule->standard_offset;
  }
  for (const Span& span : future) {
    if (span.start > spans.back().start) spans.push_back(span);
  }
  return TimeZone(std::move(spans));
}

// Takes the spans that are open under this name already, if they are the same.
void TimeZone::share(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<const std::vector<Span>>> all;
  const std::scoped_lock lock(mutex);
  auto& known = all[name];
  const auto open = known.lock();
  if (open != nullptr && *open == *spans_) {
    spans_ = open;
  } else {
    known = spans_;
  }
}

std::size_t TimeZone::index_at(std::int64_t utc) const noexcept {
  const auto after = std::ranges::upper_bound(*spans_, utc, {}, &Span::start);
  return static_cast<std::size_t>(after - spans_->begin()) - (after == spans_->begin() ? 0 : 1);
}

std::int64_t TimeZone::offset_at(std::int64_t utc) const noexcept { return (*spans_)[index_at(utc)].offset; }

std::int64_t TimeZone::first_instant(std::int64_t local) const noexcept {
  for (std::size_t i = index_at(local - kLargestOffset);; ++i) {
    const std::int64_t instant = std::max((*spans_)[i].start, local - (*spans_)[i].offset);
    if (i + 1 == spans_->size() || instant < (*spans_)[i + 1].start) return instant;
  }
}

}  // namespace sluice::algorithm
