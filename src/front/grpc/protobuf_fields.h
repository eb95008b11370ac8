// What the decoders of protobuf messages have in common.
#pragma once

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string_view>

#include "policy/request.h"

namespace sluice::front::grpc {

/// A field by its number and wire type, for a switch over pbf_reader::tag_and_type(): one of another type is unknown,
/// and must be skipped.
constexpr std::uint32_t bytes_field(std::uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::length_delimited);
}
constexpr std::uint32_t number_field(std::uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::varint);
}

inline std::string_view view_of(const protozero::data_view& view) { return {view.data(), view.size()}; }

/// A message of a key (1) and a value (2), as descriptors have them; views into it. Throws protozero::exception when it
/// is no valid protobuf.
inline Entry read_entry(protozero::pbf_reader reader) {
  Entry entry;
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case bytes_field(1):
        entry.key = view_of(reader.get_view());
        break;
      case bytes_field(2):
        entry.value = view_of(reader.get_view());
        break;
      default:
        reader.skip();
    }
  }
  return entry;
}

}  // namespace sluice::front::grpc
