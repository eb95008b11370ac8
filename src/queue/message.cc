#include "queue/message.h"

#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <stdexcept>

namespace sluice::queue {
namespace {

// As in other binary formats: a byte that no text has, and line ends that a careless copy would change.
constexpr std::string_view kMark("\x89SLQ\r\n\x1a\x01", 8);  // the last byte: the version

// Fields of a message.
constexpr std::uint32_t kTicket = 1;
constexpr std::uint32_t kCreated = 2;
constexpr std::uint32_t kExpires = 3;
constexpr std::uint32_t kDomain = 4;
constexpr std::uint32_t kDescriptor = 5;
constexpr std::uint32_t kCost = 6;
constexpr std::uint32_t kKey = 7;
constexpr std::uint32_t kGroup = 8;
constexpr std::uint32_t kMethod = 9;
constexpr std::uint32_t kPath = 10;
constexpr std::uint32_t kHeader = 11;
constexpr std::uint32_t kBody = 12;
constexpr std::uint32_t kBodyReference = 13;
constexpr std::uint32_t kReason = 14;
constexpr std::uint32_t kAttempts = 15;
// Of a descriptor.
constexpr std::uint32_t kEntry = 1;
constexpr std::uint32_t kDescriptorCost = 2;
// Of an entry or a header.
constexpr std::uint32_t kName = 1;
constexpr std::uint32_t kValue = 2;

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;

void add_pair(pbf_writer& writer, std::uint32_t field, const std::pair<std::string, std::string>& pair) {
  pbf_writer inner(writer, field);
  inner.add_string(kName, pair.first);
  inner.add_string(kValue, pair.second);
}

void add_text(pbf_writer& writer, std::uint32_t field, const std::string& text) {
  if (!text.empty()) writer.add_string(field, text);
}

std::pair<std::string, std::string> read_pair(pbf_reader reader) {
  std::pair<std::string, std::string> pair;
  while (reader.next()) {
    if (reader.tag() == kName && reader.wire_type() == pbf_wire_type::length_delimited) {
      pair.first = reader.get_string();
    } else if (reader.tag() == kValue && reader.wire_type() == pbf_wire_type::length_delimited) {
      pair.second = reader.get_string();
    } else {
      reader.skip();
    }
  }
  return pair;
}

MessageDescriptor read_descriptor(pbf_reader reader) {
  MessageDescriptor descriptor;
  while (reader.next()) {
    if (reader.tag() == kEntry && reader.wire_type() == pbf_wire_type::length_delimited) {
      descriptor.entries.push_back(read_pair(reader.get_message()));
    } else if (reader.tag() == kDescriptorCost && reader.wire_type() == pbf_wire_type::varint) {
      descriptor.cost = reader.get_uint64();
    } else {
      reader.skip();
    }
  }
  return descriptor;
}

std::string* text_of(Message& message, std::uint32_t field) {
  switch (field) {
    case kTicket:
      return &message.ticket;
    case kDomain:
      return &message.domain;
    case kKey:
      return &message.key;
    case kGroup:
      return &message.group;
    case kMethod:
      return &message.method;
    case kPath:
      return &message.path;
    case kBody:
      return &message.body;
    case kBodyReference:
      return &message.body_reference;
    case kReason:
      return &message.reason;
    default:
      return nullptr;
  }
}

void read_varint(pbf_reader& reader, Message& message) {
  switch (reader.tag()) {
    case kCreated:
      message.created_us = reader.get_int64();
      break;
    case kExpires:
      message.expires_us = reader.get_int64();
      break;
    case kCost:
      message.cost = reader.get_uint64();
      break;
    case kAttempts:
      message.attempts = reader.get_uint32();
      break;
    default:
      reader.skip();
  }
}

void read_fields(std::string_view bytes, Message& message) {
  pbf_reader reader(bytes.data(), bytes.size());
  while (reader.next()) {
    const bool is_bytes = reader.wire_type() == pbf_wire_type::length_delimited;
    if (reader.wire_type() == pbf_wire_type::varint) {
      read_varint(reader, message);
    } else if (is_bytes && reader.tag() == kDescriptor) {
      message.descriptors.push_back(read_descriptor(reader.get_message()));
    } else if (is_bytes && reader.tag() == kHeader) {
      message.headers.push_back(read_pair(reader.get_message()));
    } else if (std::string* text = is_bytes ? text_of(message, reader.tag()) : nullptr) {
      *text = reader.get_string();
    } else {
      reader.skip();  // a later version's
    }
  }
}

/// What a header or the request line must not hold: it would end early there, or be refused.
bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == 0x7f; });
}

std::string fault_of(const Message& message) {
  if (!is_ticket(message.ticket)) return "it has no ticket";
  if (message.domain.empty() || message.descriptors.empty()) return "it has no domain or no descriptors";
  for (const MessageDescriptor& descriptor : message.descriptors) {
    // Written again, what is empty would not be there.
    if (descriptor.entries.empty()) return "one of its descriptors is empty";
    for (const auto& [key, value] : descriptor.entries) {
      if (key.empty()) return "an entry of its descriptors has no key";
    }
  }
  return fault_of_request(message);
}

}  // namespace

std::string fault_of_request(const Message& message) {
  if (message.method.empty() || message.path.empty() || message.path.front() != '/') {
    return "it has no method or no path";
  }
  if (has_control(message.method) || has_control(message.path) ||
      message.path.find_first_of(" \t") != std::string::npos ||
      message.method.find_first_of(" \t") != std::string::npos) {
    return "its method or path cannot be sent";
  }
  for (const auto& [name, value] : message.headers) {
    if (name.empty() || has_control(name) || has_control(value)) return "one of its headers cannot be sent";
  }
  return {};
}

std::string encode(const Message& message) {
  std::string bytes(kMark);
  pbf_writer writer(bytes);
  add_text(writer, kTicket, message.ticket);
  writer.add_int64(kCreated, message.created_us);
  writer.add_int64(kExpires, message.expires_us);
  add_text(writer, kDomain, message.domain);
  for (const MessageDescriptor& descriptor : message.descriptors) {
    pbf_writer inner(writer, kDescriptor);
    for (const auto& entry : descriptor.entries) add_pair(inner, kEntry, entry);
    if (descriptor.cost) inner.add_uint64(kDescriptorCost, *descriptor.cost);
  }
  writer.add_uint64(kCost, message.cost);
  add_text(writer, kKey, message.key);
  add_text(writer, kGroup, message.group);
  add_text(writer, kMethod, message.method);
  add_text(writer, kPath, message.path);
  for (const auto& header : message.headers) add_pair(writer, kHeader, header);
  add_text(writer, kBody, message.body);
  add_text(writer, kBodyReference, message.body_reference);
  add_text(writer, kReason, message.reason);
  if (message.attempts != 0) writer.add_uint32(kAttempts, message.attempts);
  return bytes;
}

Decoded decode(std::string_view bytes, Message& message, std::string& reason) {
  if (!bytes.starts_with(kMark.substr(0, kMark.size() - 1))) return Decoded::foreign;
  message = Message();
  if (!bytes.starts_with(kMark)) {
    reason = "it is of a version that this one does not know";
    return Decoded::poisoned;
  }
  try {
    read_fields(bytes.substr(kMark.size()), message);
  } catch (const protozero::exception&) {
    reason = "it is cut or damaged";
    return Decoded::poisoned;
  }
  reason = fault_of(message);
  return reason.empty() ? Decoded::message : Decoded::poisoned;
}

std::string new_ticket() {
  std::array<unsigned char, 16> bits{};
  if (RAND_bytes(bits.data(), static_cast<int>(bits.size())) != 1) throw std::runtime_error("no random bytes");
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bits) {
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

bool is_ticket(std::string_view text) {
  return text.size() == 32 &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace sluice::queue
