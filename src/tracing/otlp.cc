#include "tracing/otlp.h"

#include <algorithm>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <type_traits>
#include <variant>

namespace sluice::tracing {
namespace {

using protozero::pbf_reader;
using protozero::pbf_writer;

constexpr std::int32_t kServerKind = 2;
constexpr std::int32_t kErrorStatus = 2;
// Bits of a span's flags beyond those of W3C: it is known whether the parent is in another process, and it is.
constexpr std::uint32_t kKnowsRemote = 0x100;
constexpr std::uint32_t kIsRemote = 0x200;

template <std::size_t kSize>
void put_id(pbf_writer& out, std::uint32_t field, const std::array<std::uint8_t, kSize>& id) {
  out.add_bytes(field, reinterpret_cast<const char*>(id.data()), id.size());
}

void put_text(pbf_writer& out, std::uint32_t field, std::string_view text) {
  out.add_string(field, text.data(), text.size());
}

void put_attribute(pbf_writer& parent, std::uint32_t field, std::string_view name, const Span::Value& value) {
  pbf_writer pair(parent, field);
  put_text(pair, 1, name);
  pbf_writer any(pair, 2);
  std::visit(
      [&](const auto& one) {
        if constexpr (std::is_same_v<std::decay_t<decltype(one)>, std::string>) {
          put_text(any, 1, one);
        } else {
          any.add_int64(3, one);
        }
      },
      value);
}

void put_span(pbf_writer& parent, const Span& span) {
  pbf_writer out(parent, 2);
  put_id(out, 1, span.trace);
  put_id(out, 2, span.id);
  if (!span.state.empty()) put_text(out, 3, span.state);
  if (span.has_parent) put_id(out, 4, span.parent);
  put_text(out, 5, span.name);
  out.add_enum(6, kServerKind);
  out.add_fixed64(7, static_cast<std::uint64_t>(span.begun));
  out.add_fixed64(8, static_cast<std::uint64_t>(span.ended));
  for (const auto& [name, value] : span.attributes) put_attribute(out, 9, name, value);
  if (span.failed) {
    pbf_writer status(out, 15);
    status.add_enum(3, kErrorStatus);
  }
  out.add_fixed32(16, span.flags | kKnowsRemote | (span.has_parent ? kIsRemote : 0));
}

}  // namespace

std::string encode_traces(std::span<const Span> spans, const Sender& sender) {
  std::string bytes;
  pbf_writer request(bytes);
  pbf_writer of_resource(request, 1);
  {
    pbf_writer resource(of_resource, 1);
    put_attribute(resource, 1, "service.name", sender.service);
    put_attribute(resource, 1, "service.version", sender.version);
    put_attribute(resource, 1, "service.instance.id", sender.instance);
  }
  pbf_writer of_scope(of_resource, 2);
  {
    pbf_writer scope(of_scope, 1);
    put_text(scope, 1, "sluice");
    put_text(scope, 2, sender.version);
  }
  for (const Span& span : spans) put_span(of_scope, span);
  return bytes;
}

std::int64_t refused_of(std::string_view response) {
  std::int64_t refused = 0;
  try {
    pbf_reader reader(response.data(), response.size());
    while (reader.next(1, protozero::pbf_wire_type::length_delimited)) {
      pbf_reader partial = reader.get_message();
      while (partial.next(1, protozero::pbf_wire_type::varint)) refused = partial.get_int64();
    }
  } catch (const protozero::exception&) {
    return 0;
  }
  return std::max<std::int64_t>(0, refused);
}

}  // namespace sluice::tracing
