#include "policy/overflow_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/duration.h"
#include "base/suggest.h"
#include "policy/place_names.h"

namespace sluice::policy {
namespace {

using std::chrono::nanoseconds;

constexpr std::uint64_t kMostLength = 1'000'000'000;
constexpr nanoseconds kLeastAge = std::chrono::milliseconds(1);
constexpr nanoseconds kMostAge = std::chrono::hours(24) * 366;

void check_queue(const Field& field, const LoadOptions& options, Findings& findings) {
  if (!options.queues) return;
  const std::vector<std::string>& known = *options.queues;
  const std::string& name = field.value->text;
  if (std::ranges::find(known, name) != known.end()) return;
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string_view meant = nearest(name, names);
  std::string help = "; the server file has no `queues:`";
  if (!known.empty()) help = fmt::format("; known are {}", fmt::join(known, ", "));
  if (!meant.empty()) help = fmt::format("; did you mean {}?", meant);
  findings.error(field.value->position, fmt::format("there is no queue {} in the server file{}", quote(name), help));
}

}  // namespace

std::optional<Overflow> read_overflow(const FieldReader& limit, const LoadOptions& options, Findings& findings) {
  const Field* field = limit.find("overflow");
  if (field == nullptr) return std::nullopt;
  if (field->value->kind != yaml::Node::Kind::map) {
    findings.error(field->value->position,
                   fmt::format("`overflow` must be a map with `queue`, found {}", described(*field->value)));
    return std::nullopt;
  }
  const std::size_t errors_before = findings.errors();
  const FieldReader fields(*field->value, findings);
  check_names(fields, Place::overflow, findings);
  Overflow overflow;
  overflow.queue = fields.text("queue").value_or("");
  if (!overflow.queue.empty()) {
    check_queue(*fields.find("queue"), options, findings);
  } else if (const Field* queue = fields.find("queue"); queue == nullptr || queue->value->text.empty()) {
    findings.error(field->value->position, "`overflow` needs the name of a `queue` of the server file, found none");
  }
  overflow.max_length = fields.number("max_length", 1, kMostLength).value_or(overflow.max_length);
  if (const auto text = fields.text("max_age")) {
    const yaml::Position position = fields.find("max_age")->value->position;
    const Result<nanoseconds> age = parse_duration(*text);
    if (!age) {
      findings.error(position, "`max_age`: " + age.error().message);
    } else if (*age < kLeastAge || *age > kMostAge) {
      findings.error(position, fmt::format("`max_age` must be from 1ms to 366d, found {}", quote(*text)));
    } else {
      overflow.max_age = *age;
    }
  }
  // Written out by those who want the file to say what a client sees; there is no other answer.
  if (fields.find("answer") != nullptr) (void)fields.number("answer", 202, 202);
  if (findings.errors() != errors_before) return std::nullopt;
  return overflow;
}

}  // namespace sluice::policy
