// W3C trace context: whatever comes, what is read is what W3C allows, and reading it again gives the same.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/support.h"
#include "tracing/trace_context.h"

namespace tracing = sluice::tracing;
using sluice::fuzz::require;

namespace {

template <std::size_t kSize>
void append_hex(const std::array<std::uint8_t, kSize>& bytes, std::string& out) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const std::uint8_t byte : bytes) (out += digits[byte >> 4U]) += digits[byte & 15U];
}

std::string written(const tracing::TraceParent& parent) {
  std::string out = "00-";
  append_hex(parent.trace, out);
  out += '-';
  append_hex(parent.span, out);
  out += '-';
  append_hex(std::array<std::uint8_t, 1>{parent.flags}, out);
  return out;
}

}  // namespace

/// A line is a field: "p" and a value of traceparent, or "s" and one of tracestate.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  tracing::TraceFields fields;
  int parents = 0;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.starts_with('p')) {
      ++parents;
      fields.add_parent(line.substr(1));
      const auto parent = tracing::parse_traceparent(line.substr(1));
      if (!parent) continue;
      require(parent->trace != tracing::TraceId{} && parent->span != tracing::SpanId{});
      require(tracing::parse_traceparent(written(*parent)) == parent);
    } else if (line.starts_with('s')) {
      fields.add_state(line.substr(1));
    }
  }
  require(!fields.parent() || parents == 1);
  const std::string_view state = fields.state();
  require(state.size() <= tracing::kMostStateBytes && tracing::is_tracestate(state));
  require(state.empty() || fields.parent());
  fields.clear();
  require(!fields.parent() && fields.state().empty());
  return 0;
}
