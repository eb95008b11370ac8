#include "tests/integration/support/collector.h"

#include <sys/socket.h>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <protozero/pbf_reader.hpp>
#include <stdexcept>
#include <utility>

#include "tests/integration/support/process.h"

namespace sluice::test {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using protozero::pbf_reader;
using Tcp = boost::asio::ip::tcp;

std::string hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    (out += digits[byte >> 4U]) += digits[byte & 15U];
  }
  return out;
}

[[noreturn]] void refuse(const char* message, std::uint32_t field) {
  throw std::runtime_error(std::string(message) + " has no field " + std::to_string(field));
}

std::pair<std::string, std::string> read_attribute(pbf_reader reader) {
  std::pair<std::string, std::string> pair;
  while (reader.next()) {
    if (reader.tag() == 1) {
      pair.first = reader.get_string();
      continue;
    }
    pbf_reader value = reader.get_message();
    while (value.next()) {
      const std::uint32_t field = value.tag();
      if (field == 1) {
        pair.second = value.get_string();
      } else if (field == 3) {
        pair.second = std::to_string(value.get_int64());
      } else {
        refuse("AnyValue, as it is used here,", field);
      }
    }
  }
  return pair;
}

SeenSpan read_span(pbf_reader reader) {
  SeenSpan span;
  while (reader.next()) {
    switch (const std::uint32_t field = reader.tag()) {
      case 1:
        span.trace = hex(reader.get_string());
        break;
      case 2:
        span.id = hex(reader.get_string());
        break;
      case 3:
        span.state = reader.get_string();
        break;
      case 4:
        span.parent = hex(reader.get_string());
        break;
      case 5:
        span.name = reader.get_string();
        break;
      case 6:
        span.kind = static_cast<std::uint64_t>(reader.get_enum());
        break;
      case 7:
        span.begun = reader.get_fixed64();
        break;
      case 8:
        span.ended = reader.get_fixed64();
        break;
      case 9:
        span.attributes.insert(read_attribute(reader.get_message()));
        break;
      case 15: {
        pbf_reader status = reader.get_message();
        while (status.next(3)) span.status = static_cast<std::uint64_t>(status.get_enum());
        break;
      }
      case 16:
        span.flags = reader.get_fixed32();
        break;
      default:
        refuse("Span", field);
    }
  }
  return span;
}

void read_scope_spans(pbf_reader reader, SeenExport& seen) {
  while (reader.next()) {
    if (reader.tag() == 1) {
      pbf_reader scope = reader.get_message();
      while (scope.next()) {
        if (scope.tag() == 1) {
          seen.scope = scope.get_string();
        } else {
          scope.skip();
        }
      }
    } else {
      seen.spans.push_back(read_span(reader.get_message()));
    }
  }
}

}  // namespace

SeenExport read_export(std::string_view message) {
  SeenExport seen;
  pbf_reader request(message.data(), message.size());
  while (request.next()) {
    if (request.tag() != 1) refuse("ExportTraceServiceRequest", request.tag());
    pbf_reader of_resource = request.get_message();
    while (of_resource.next()) {
      if (of_resource.tag() == 2) {
        read_scope_spans(of_resource.get_message(), seen);
        continue;
      }
      pbf_reader resource = of_resource.get_message();
      while (resource.next(1)) seen.resource.insert(read_attribute(resource.get_message()));
    }
  }
  return seen;
}

Collector::Collector(Respond respond)
    : respond_(std::move(respond)), acceptor_(io_, {boost::asio::ip::address_v4::loopback(), 0}) {
  thread_ = std::thread([this] { serve(); });
}

Collector::~Collector() {
  stopping_ = true;
  if (const int descriptor = descriptor_; descriptor >= 0) ::shutdown(descriptor, SHUT_RDWR);
  Tcp::socket last(io_);
  error_code ignored;
  (void)last.connect(acceptor_.local_endpoint(), ignored);
  last.close();
  thread_.join();
}

std::string Collector::url() const { return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }

std::vector<SeenExport> Collector::exports() const {
  const std::scoped_lock lock(mutex_);
  return exports_;
}

std::vector<SeenSpan> Collector::spans() const {
  std::vector<SeenSpan> all;
  for (const SeenExport& one : exports()) all.insert(all.end(), one.spans.begin(), one.spans.end());
  return all;
}

std::vector<SeenSpan> Collector::wait_for(std::size_t count) const {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (spans().size() < count && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return spans();
}

/// One connection at a time; it is left when the peer leaves it.
void Collector::serve() {
  while (!stopping_) {
    Tcp::socket socket(io_);
    acceptor_.accept(socket);
    descriptor_ = socket.native_handle();
    boost::beast::flat_buffer buffer;
    error_code error;
    while (!error && !stopping_) {
      http::request<http::string_body> request;
      http::read(socket, buffer, request, error);
      if (error) break;
      const CollectorAnswer told = respond_ ? respond_(requests_) : CollectorAnswer{};
      ++requests_;
      if (told.status == 200) {
        SeenExport seen = read_export(request.body());
        seen.head = std::string(request.method_string()) + ' ' + std::string(request.target()) + ' ' +
                    std::string(request[http::field::content_type]);
        const std::scoped_lock lock(mutex_);
        exports_.push_back(std::move(seen));
      }
      http::response<http::string_body> answer{static_cast<http::status>(told.status), 11};
      if (!told.retry_after.empty()) answer.set(http::field::retry_after, told.retry_after);
      answer.body() = told.body;
      answer.prepare_payload();
      http::write(socket, answer, error);
    }
    descriptor_ = -1;
  }
}

}  // namespace sluice::test
