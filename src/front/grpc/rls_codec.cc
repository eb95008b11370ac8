#include "front/grpc/rls_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <protozero/pbf_reader.hpp>
#include <protozero/varint.hpp>

#include "front/grpc/protobuf_fields.h"
#include "front/grpc/struct_codec.h"

namespace sluice::front::grpc {
namespace {

using protozero::pbf_reader;

pbf_reader reader_of(std::string_view message) { return {message.data(), message.size()}; }

std::uint64_t read_wrapped_number(std::string_view message) {
  std::uint64_t value = 0;
  pbf_reader reader = reader_of(message);
  while (reader.next()) {
    if (reader.tag_and_type() == number_field(1)) {
      value = reader.get_uint64();
    } else {
      reader.skip();
    }
  }
  return value;
}

}  // namespace

bool RequestDecoder::fail(StatusCode code, std::string_view text) {
  code_ = code;
  error_ = text;
  return false;
}

bool RequestDecoder::decode(std::string_view message) {
  request_ = {};
  entries_.clear();
  descriptors_.clear();
  entry_ends_.clear();
  try {
    if (!read_request(message)) return false;
  } catch (const protozero::exception& e) {
    return fail(StatusCode::invalid_argument, fmt::format("RateLimitRequest is not valid protobuf: {}", e.what()));
  }
  std::size_t begin = 0;
  for (std::size_t i = 0; i < descriptors_.size(); ++i) {
    descriptors_[i].entries = std::span(entries_).subspan(begin, entry_ends_[i] - begin);
    begin = entry_ends_[i];
  }
  request_.descriptors = descriptors_;
  return true;
}

bool RequestDecoder::read_request(std::string_view message) {
  std::uint32_t hits = 0;
  pbf_reader reader = reader_of(message);
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case bytes_field(1):
        request_.domain = view_of(reader.get_view());
        break;
      case bytes_field(2):
        if (!read_descriptor(view_of(reader.get_view()))) return false;
        break;
      case number_field(3):
        hits = reader.get_uint32();
        break;
      default:
        reader.skip();
    }
  }
  request_.cost = std::max<std::uint64_t>(1, hits);
  request_.has_cost = hits != 0;
  return true;
}

bool RequestDecoder::read_descriptor(std::string_view message) {
  if (descriptors_.size() == kMaxDescriptors) {
    return fail(StatusCode::invalid_argument, fmt::format("more than {} descriptors in a request", kMaxDescriptors));
  }
  Descriptor descriptor;
  pbf_reader reader = reader_of(message);
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case bytes_field(1):
        if (entries_.size() == kMaxEntries) {
          return fail(StatusCode::invalid_argument,
                      fmt::format("more than {} descriptor entries in a request", kMaxEntries));
        }
        entries_.push_back(read_entry(reader.get_message()));
        break;
      case bytes_field(2):
        if (!read_override(view_of(reader.get_view()), descriptor)) return false;
        break;
      case bytes_field(3):
        descriptor.cost = read_wrapped_number(view_of(reader.get_view()));
        break;
      case number_field(4):
        if (reader.get_uint64() != 0) {
          return fail(StatusCode::unimplemented, "is_negative_hits is not supported: nothing was charged or refunded");
        }
        break;
      default:
        reader.skip();
    }
  }
  descriptors_.push_back(descriptor);
  entry_ends_.push_back(entries_.size());
  return true;
}

bool RequestDecoder::read_override(std::string_view message, Descriptor& descriptor) {
  LimitOverride limit;
  std::uint64_t unit = 0;
  pbf_reader reader = reader_of(message);
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case number_field(1):
        limit.requests_per_unit = reader.get_uint32();
        break;
      case number_field(2):
        unit = reader.get_uint64();
        break;
      default:
        reader.skip();
    }
  }
  if (unit < static_cast<std::uint64_t>(Unit::second) || unit > static_cast<std::uint64_t>(Unit::week)) {
    return fail(StatusCode::invalid_argument,
                fmt::format("the limit of a descriptor has unit {}, expected 1 (SECOND) to 7 (WEEK)", unit));
  }
  limit.unit = static_cast<Unit>(unit);
  descriptor.limit = limit;
  return true;
}

namespace {

constexpr std::uint64_t kCodeOk = 1;
constexpr std::uint64_t kCodeOverLimit = 2;
constexpr std::uint64_t kMaxUint32 = std::numeric_limits<std::uint32_t>::max();

std::size_t varint_size(std::uint64_t value) { return static_cast<std::size_t>(protozero::length_of_varint(value)); }

/// Writes fields of which all tags fit in one byte; a number that is 0 is left out, as proto3 has it.
void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80U) {
    out += static_cast<char>((value & 0x7FU) | 0x80U);
    value >>= 7U;
  }
  out += static_cast<char>(value);
}

std::size_t number_size(std::uint64_t value) { return value == 0 ? 0 : 1 + varint_size(value); }
void put_number(std::string& out, std::uint32_t field, std::uint64_t value) {
  if (value == 0) return;
  out += static_cast<char>(number_field(field));
  put_varint(out, value);
}

std::size_t bytes_size(std::size_t length) { return 1 + varint_size(length) + length; }
/// The head of a length-delimited field, whose `length` bytes follow.
void put_length(std::string& out, std::uint32_t field, std::size_t length) {
  out += static_cast<char>(bytes_field(field));
  put_varint(out, length);
}

void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  put_length(out, field, bytes.size());
  out += bytes;
}

void put_status(std::string& out, const limiter::Status& status) {
  const std::uint64_t code = status.over_limit ? kCodeOverLimit : kCodeOk;
  const policy::Rule* rule = status.rule;
  if (rule == nullptr || rule->unlimited || !has_figures(status.decision)) {
    const std::uint64_t remaining = rule != nullptr && rule->unlimited ? kMaxUint32 : 0;
    put_length(out, 2, number_size(code) + number_size(remaining));
    put_number(out, 1, code);
    put_number(out, 3, remaining);
    return;
  }

  const auto unit = static_cast<std::uint64_t>(rule->unit);
  const std::size_t limit_size = number_size(rule->requests_per_unit) + number_size(unit) +
                                 (rule->name.empty() ? 0 : bytes_size(rule->name.size()));
  const std::uint64_t remaining = std::min(status.decision.remaining, kMaxUint32);
  const Wait reset = until_reset(*rule, status.decision);
  const std::uint64_t seconds = reset.is_never() ? 0 : static_cast<std::uint64_t>(reset.ceil_seconds());
  const std::size_t reset_size = number_size(seconds);

  put_length(out, 2,
             number_size(code) + bytes_size(limit_size) + number_size(remaining) +
                 (reset.is_never() ? 0 : bytes_size(reset_size)));
  put_number(out, 1, code);
  put_length(out, 2, limit_size);
  put_number(out, 1, rule->requests_per_unit);
  put_number(out, 2, unit);
  if (!rule->name.empty()) put_bytes(out, 3, rule->name);
  put_number(out, 3, remaining);
  if (!reset.is_never()) {
    put_length(out, 4, reset_size);
    put_number(out, 1, seconds);
  }
}

}  // namespace

void encode_response(const limiter::Answer& answer, const HeaderOptions& options, HeaderList& headers,
                     std::string& out) {
  put_number(out, 1, answer.allowed ? kCodeOk : kCodeOverLimit);
  for (const limiter::Status& status : answer.statuses) put_status(out, status);
  render_headers(answer, options, headers);
  for (const Header& header : headers.fields()) {
    put_length(out, 3, bytes_size(header.name.size()) + bytes_size(header.value.size()));
    put_bytes(out, 1, header.name);
    put_bytes(out, 2, header.value);
  }
  if (!answer.dynamic_metadata.empty()) {
    const std::string metadata = encode_struct(answer.dynamic_metadata);
    put_bytes(out, 6, metadata);
  }
}

}  // namespace sluice::front::grpc
