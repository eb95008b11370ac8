#include "front/grpc/limiter_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <utility>

#include "base/utf8.h"
#include "front/grpc/protobuf_fields.h"
#include "front/grpc/rls_codec.h"
#include "limiter/words.h"
#include "sluice/limit.h"
#include "store/ban_store.h"

namespace sluice::front::grpc {
namespace {

using protozero::pbf_reader;
using protozero::pbf_writer;

constexpr std::string_view kService = "/sluice.v1.Limiter/";
constexpr std::array<std::pair<std::string_view, LimiterMethod>, 12> kMethods{{{"Check", LimiterMethod::check},
                                                                               {"Peek", LimiterMethod::peek},
                                                                               {"Acquire", LimiterMethod::acquire},
                                                                               {"Reserve", LimiterMethod::reserve},
                                                                               {"Refund", LimiterMethod::refund},
                                                                               {"Settle", LimiterMethod::settle},
                                                                               {"Penalize", LimiterMethod::penalize},
                                                                               {"Reset", LimiterMethod::reset},
                                                                               {"Ban", LimiterMethod::ban},
                                                                               {"Release", LimiterMethod::release},
                                                                               {"Commit", LimiterMethod::commit},
                                                                               {"Cancel", LimiterMethod::cancel}}};

void put_text(pbf_writer& out, std::uint32_t field, std::string_view text) {
  if (!text.empty()) out.add_string(field, text.data(), text.size());
}

void put_number(pbf_writer& out, std::uint32_t field, std::uint64_t value) {
  if (value != 0) out.add_uint64(field, value);
}

// Of an optional field: also 0.
void put_wait(pbf_writer& out, std::uint32_t field, Wait wait) {
  if (!wait.is_never()) out.add_int64(field, wait.value().count());
}

void put_explanation(pbf_writer& parent, const limiter::Status& status) {
  pbf_writer out(parent, 10);
  const policy::Rule& rule = *status.rule;
  const Limit& numbers = rule.counted.numbers;
  put_text(out, 1, limiter::mode_name(rule.enforcement));
  put_text(out, 2, rule.metric_path);
  if (rule.unlimited) return;
  put_text(out, 3, status.key);
  put_number(out, 4, status.cost);
  put_text(out, 5, limiter::algorithm_name(numbers.algorithm));
  put_number(out, 6, numbers.rate);
  const bool has_leases = numbers.algorithm == Algorithm::concurrency;
  put_number(out, 7, static_cast<std::uint64_t>((has_leases ? numbers.ttl : numbers.period).count()));
  if (numbers.algorithm == Algorithm::token_bucket) put_number(out, 8, numbers.burst);
  if (status.decision.allowed) out.add_bool(9, true);
}

/// `explained`: null: not asked for.
void put_verdict(pbf_writer& parent, std::uint32_t field, const limiter::Verdict& verdict,
                 const limiter::Status* explained) {
  pbf_writer out(parent, field);
  if (verdict.allowed) out.add_bool(1, true);
  put_text(out, 2, limiter::reason_of(verdict));
  if (verdict.rule == nullptr) return;
  put_text(out, 3, verdict.rule->label());
  if (!verdict.rule->unlimited) put_text(out, 4, limiter::source_name(verdict.decision.source));
  if (verdict.has_figures()) {
    put_number(out, 5, verdict.decision.limit);
    put_number(out, 6, verdict.decision.remaining);
    if (!verdict.allowed) put_wait(out, 7, verdict.decision.retry_after);
    put_wait(out, 8, verdict.decision.reset_after);
    if (verdict.allowed && verdict.decision.delay != Wait()) put_wait(out, 9, verdict.decision.delay);
  }
  if (explained != nullptr) put_explanation(out, *explained);
}

bool takes_descriptor_costs(LimiterMethod method) {
  switch (method) {
    case LimiterMethod::reserve:
    case LimiterMethod::settle:
    case LimiterMethod::reset:
    case LimiterMethod::ban:
      return false;
    default:
      return true;
  }
}

}  // namespace

std::optional<LimiterMethod> find_limiter_method(std::string_view path) {
  if (!path.starts_with(kService)) return std::nullopt;
  path.remove_prefix(kService.size());
  for (const auto& [name, method] : kMethods) {
    if (name == path) return method;
  }
  return std::nullopt;
}

std::string_view method_name(LimiterMethod method) {
  const auto* const found = std::ranges::find(kMethods, method, &std::pair<std::string_view, LimiterMethod>::second);
  return found->first;
}

bool is_guarded(LimiterMethod method) {
  switch (method) {
    case LimiterMethod::check:
    case LimiterMethod::peek:
    case LimiterMethod::acquire:
    case LimiterMethod::reserve:
      return false;
    default:
      return true;
  }
}

/// What the requests have, under the same numbers.
struct LimiterDecoder::Fields {
  std::optional<std::uint64_t> cost;
  std::uint64_t reserved = 0;
  std::uint64_t actual = 0;
  std::optional<std::int64_t> at;
  std::int64_t duration = 0;
  std::string_view hold;
};

bool LimiterDecoder::fail(std::string text) {
  error_ = std::move(text);
  return false;
}

bool LimiterDecoder::decode(LimiterMethod method, std::string_view message) {
  request_ = {};
  verb_.reset();
  entries_.clear();
  descriptors_.clear();
  entry_ends_.clear();
  hold_.reset();
  Fields fields;
  try {
    if (!read(message, fields)) return false;
  } catch (const protozero::exception& problem) {
    return fail(fmt::format("the request is not valid protobuf: {}", problem.what()));
  }
  std::size_t begin = 0;
  for (std::size_t i = 0; i < descriptors_.size(); ++i) {
    descriptors_[i].entries = std::span(entries_).subspan(begin, entry_ends_[i] - begin);
    begin = entry_ends_[i];
  }
  request_.descriptors = descriptors_;
  const bool is_hold =
      method == LimiterMethod::release || method == LimiterMethod::commit || method == LimiterMethod::cancel;
  return is_hold ? apply_hold(method, fields) : apply(method, fields);
}

bool LimiterDecoder::read(std::string_view message, Fields& fields) {
  pbf_reader reader(message.data(), message.size());
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case bytes_field(1):
        request_.domain = view_of(reader.get_view());
        if (!is_utf8(request_.domain)) return fail("domain: not valid UTF-8");
        break;
      case bytes_field(2):
        if (!read_descriptor(view_of(reader.get_view()))) return false;
        break;
      case number_field(3):
        fields.cost = reader.get_uint64();
        break;
      case number_field(4):
        fields.reserved = reader.get_uint64();
        break;
      case number_field(5):
        fields.actual = reader.get_uint64();
        break;
      case number_field(6):
        fields.at = reader.get_int64();
        break;
      case number_field(7):
        fields.duration = reader.get_int64();
        break;
      case bytes_field(8):
        fields.hold = view_of(reader.get_view());
        break;
      case number_field(9):
        request_.explain = reader.get_uint64() != 0;  // get_bool looks before it knows that there is a byte
        break;
      default:
        reader.skip();
    }
  }
  return true;
}

bool LimiterDecoder::read_descriptor(std::string_view message) {
  if (descriptors_.size() == kMaxDescriptors) {
    return fail(fmt::format("more than {} descriptors in a request", kMaxDescriptors));
  }
  Descriptor descriptor;
  pbf_reader reader(message.data(), message.size());
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case bytes_field(1):
        if (entries_.size() == kMaxEntries) return fail(fmt::format("more than {} entries in a request", kMaxEntries));
        entries_.push_back(read_entry(reader.get_message()));
        if (!is_utf8(entries_.back().key) || !is_utf8(entries_.back().value)) {
          return fail("descriptors: a key or a value is not valid UTF-8");
        }
        break;
      case number_field(2):
        descriptor.cost = reader.get_uint64();
        break;
      default:
        reader.skip();
    }
  }
  if (entries_.size() == (entry_ends_.empty() ? 0 : entry_ends_.back())) {
    return fail("a descriptor needs at least one entry");
  }
  descriptors_.push_back(descriptor);
  entry_ends_.push_back(entries_.size());
  return true;
}

bool LimiterDecoder::apply(LimiterMethod method, const Fields& fields) {
  using Kind = limiter::CounterVerb::Kind;
  request_.cost = fields.cost.value_or(1);
  if (fields.at && *fields.at < 0) return fail("at_unix_nanos: expected a time since 1970");
  const bool has_descriptor_costs =
      std::ranges::any_of(descriptors_, [](const Descriptor& one) { return one.cost.has_value(); });
  if (has_descriptor_costs && !takes_descriptor_costs(method))
    return fail("descriptors: a descriptor has no cost here");
  const auto set_verb = [&](Kind kind) { verb_.emplace().kind = kind; };
  switch (method) {
    case LimiterMethod::check:
      break;
    case LimiterMethod::peek:
      request_.peek = true;
      request_.leases = true;
      break;
    case LimiterMethod::acquire:
      request_.leases = true;
      break;
    case LimiterMethod::reserve:
      request_.reserve = std::chrono::nanoseconds(fields.duration == 0 ? 60'000'000'000 : fields.duration);
      if (fields.duration < 0 || request_.reserve > limiter::kLongestReservation) {
        return fail("duration_nanos: expected 0 (a minute) to an hour");
      }
      break;
    case LimiterMethod::refund:
      set_verb(Kind::refund);
      verb_->at = fields.at;
      break;
    case LimiterMethod::settle:
      set_verb(Kind::settle);
      verb_->reserved = fields.reserved;
      verb_->actual = fields.actual;
      verb_->at = fields.at;
      break;
    case LimiterMethod::penalize:
      set_verb(Kind::penalize);
      break;
    case LimiterMethod::ban:
      set_verb(Kind::ban);
      if (fields.duration < 0 || fields.duration > std::chrono::nanoseconds(store::kLongestBan).count()) {
        return fail("duration_nanos: expected 0 to ten years");
      }
      verb_->time = std::chrono::ceil<std::chrono::microseconds>(std::chrono::nanoseconds(fields.duration));
      break;
    default:
      set_verb(Kind::reset);
      break;
  }
  return true;
}

bool LimiterDecoder::apply_hold(LimiterMethod method, const Fields& fields) {
  const bool is_lease = method == LimiterMethod::release;
  limiter::Hold hold;
  const auto kind = is_lease ? limiter::Hold::Kind::lease : limiter::Hold::Kind::reservation;
  if (!limiter::from_text(fields.hold, hold) || hold.kind != kind) {
    return fail(is_lease ? "hold: expected a lease as Acquire has given it"
                         : "hold: expected a reservation as Reserve has given it");
  }
  if (fields.actual > kMaxTokens) return fail(fmt::format("actual: expected 0 to {}", kMaxTokens));
  hold_ = std::make_unique<limiter::HoldRequest>(std::move(hold));
  request_ = hold_->request();
  verb_ = is_lease ? hold_->release() : hold_->commit(method == LimiterMethod::commit ? fields.actual : 0);
  return true;
}

void encode_check_response(const limiter::Answer& answer, std::string& out) {
  pbf_writer writer(out);
  put_verdict(writer, 1, limiter::verdict_of(answer), nullptr);
  for (std::size_t i = 0; i < answer.statuses.size(); ++i) {
    const limiter::Status& status = answer.statuses[i];
    put_verdict(writer, 2, limiter::verdict_of(answer, i),
                answer.explain && status.rule != nullptr ? &status : nullptr);
  }
  if (answer.hold) put_text(writer, 3, limiter::to_text(*answer.hold));
}

void encode_verb_response(const limiter::VerbAnswer& answer, std::string& out) {
  pbf_writer writer(out);
  put_text(writer, 1, limiter::result_of(answer));
  for (const limiter::VerbStatus& status : answer.statuses) {
    pbf_writer one(writer, 2);
    put_text(one, 1, limiter::result_of(answer, status));
    if (status.rule == nullptr) continue;
    put_text(one, 2, status.rule->label());
    if (status.failure != store::Failure::none) {
      if (store::may_be_done(status.failure)) one.add_bool(7, true);
      put_text(one, 8, store::to_text(status.failure));
    } else if (status.done && answer.kind != limiter::CounterVerb::Kind::ban) {
      put_text(one, 3, limiter::source_name(status.decision.source));
      put_number(one, 4, status.decision.limit);
      put_number(one, 5, status.decision.remaining);
      put_wait(one, 6, status.decision.reset_after);
    }
  }
}

}  // namespace sluice::front::grpc
