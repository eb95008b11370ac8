// Requests of any shape: the first line is the target, the others are header fields, "name: value". They map to
// descriptors or are refused; the same twice in a row, and what is equivalent to a path is the same path.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"
#include "request/mapper.h"

namespace {

constexpr std::string_view kPolicy = R"(
domain: d
requests:
  trusted_proxies: [10.0.0.0/8]
  cost: { header_name: x-cost }
  rate_limits:
    - actions: [ remote_address, method, path ]
    - actions: [ { route: { patterns: ["/articles/{id}", "GET /files/{rest...}", "/"] } } ]
    - actions: [ { cookie: { name: session } } ]
    - actions: [ { query_parameters: { query_parameter_name: q, descriptor_key: q } } ]
    - actions: [ { request_headers: { header_name: x-user, descriptor_key: user } } ]
      hits_addend: { format: "%REQ(x-cost)%" }
    - actions: [ { header_value_match: { descriptor_value: v, headers: [ { name: x-user, range_match: { start: 1, end: 9 } } ] } } ]
    - actions: [ { query_parameter_value_match: { descriptor_value: v, query_parameters: [ { name: d, string_match: { prefix: a, ignore_case: true } } ] } } ]
)";

void require(bool holds) {
  if (!holds) std::abort();
}

sluice::request::Mapper& mapper() {
  static const std::shared_ptr<const sluice::policy::Policy> kLoaded = [] {
    const std::array<sluice::policy::SourceText, 1> texts{{{"p", std::string(kPolicy)}}};
    return sluice::policy::load_texts(texts).policy;
  }();
  require(kLoaded != nullptr);
  static sluice::request::Mapper one(kLoaded->requests().front());
  return one;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return line;
}

std::string mapped(const sluice::HttpRequest& request) {
  std::string out;
  if (!mapper().map(request, sluice::Time{.steady = 1, .utc = 1})) return out;
  for (const sluice::Descriptor& descriptor : mapper().request().descriptors) {
    require(!descriptor.entries.empty());
    for (const sluice::Entry& entry : descriptor.entries) {
      require(!entry.key.empty());
      out.append(entry.key).append("=").append(entry.value).append("\n");
    }
    out += std::to_string(descriptor.cost.value_or(0)) + ";\n";
  }
  return out + std::to_string(mapper().request().cost);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  sluice::HttpRequest request;
  request.method = "GET";
  request.peer = "10.0.0.1";
  request.target = take_line(text);
  std::vector<sluice::HeaderField> fields;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t colon = line.find(": ");
    if (colon != std::string_view::npos) fields.push_back({line.substr(0, colon), line.substr(colon + 2)});
  }
  request.headers = fields;
  const std::string first = mapped(request);
  require(mapped(request) == first);

  sluice::request::PathSegments path;
  path.read(request.target);
  std::string normal;
  path.append_to(normal);
  sluice::request::PathSegments again;
  again.read(normal);
  std::string twice;
  again.append_to(twice);
  require(normal == twice);
  return 0;
}
