#include "front/http/request_reader.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/ascii.h"
#include "front/http/accept.h"
#include "front/http/forward_auth.h"
#include "identity/guard.h"

namespace sluice::http {
namespace {

namespace beast_http = boost::beast::http;

using ErrorCode = boost::beast::error_code;
using BeastView = boost::beast::string_view;

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::size_t kMaxTarget = std::size_t{8} * 1024;

std::string_view to_view(BeastView text) { return {text.data(), text.size()}; }

/// So that what is no HTTP at all, as a TLS handshake, is refused at its first byte.
bool is_method_start(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

/// "/a/b" of "/a/b?c" and of "http://host/a/b?c".
std::string_view path_of(std::string_view target) {
  if (const std::size_t scheme = target.find("://"); !target.starts_with('/') && scheme != std::string_view::npos) {
    const std::size_t slash = target.find_first_of("/?", scheme + 3);
    if (slash == std::string_view::npos || target[slash] == '?') return "/";
    target.remove_prefix(slash);
  }
  return target.substr(0, target.find_first_of("?#"));
}

/// What Host may consist of: RFC 3986's uri-host and port. Empty is allowed.
bool is_host(std::string_view text) {
  constexpr std::string_view marks = "-._~!$&'()*+,;=:%[]";
  return std::all_of(text.begin(), text.end(), [marks](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           marks.find(c) != std::string_view::npos;
  });
}

/// Is the part of this request's first line behind its target a version of HTTP, "HTTP/" digit "." digit?
bool names_version(std::string_view head) {
  constexpr std::string_view name = "HTTP/";
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string_view rest = head.substr(0, head.find("\r\n"));
  for (int part = 0; part < 2; ++part) rest.remove_prefix(rest.find(' ') + 1);  // Beast has found both
  return rest.size() == name.size() + 3 && rest.starts_with(name) && is_digit(rest[5]) && rest[6] == '.' &&
         is_digit(rest[7]);
}

/// Does the line that ends at `end` go on with the next, as fields once might? Others may take that for a field of its
/// own, or for the end of the head: RFC 9112, 5.2.
bool is_folded(std::string_view text, std::size_t end) {
  const std::size_t next = end + kLineEnd.size();
  return next < text.size() && (text[next] == ' ' || text[next] == '\t');
}

const RequestFault kFolded{400, "a header field goes on in the next line (obs-fold): write it on one"};

/// Is it what follows the last chunk's data – a length of 0, and a trailer – whose last line goes on with the one
/// before?
bool ends_folded(std::string_view lines) {
  const std::size_t before = lines.rfind(kLineEnd, lines.size() - std::min<std::size_t>(lines.size(), 3));
  if (before == std::string_view::npos || !is_folded(lines, before)) return false;
  lines.remove_prefix(std::min(lines.size(), lines.find_first_not_of(kLineEnd)));
  const std::size_t behind = lines.find_first_not_of('0');
  return behind != 0 && behind != std::string_view::npos && (lines[behind] == '\r' || lines[behind] == ';');
}

/// Of everything that Beast found wrong.
RequestFault describe(const ErrorCode& error, bool in_body) {
  if (error == beast_http::error::bad_method) return {400, "malformed request line: bad method"};
  if (error == beast_http::error::bad_target) return {400, "malformed request line: bad target"};
  if (error == beast_http::error::bad_version) return {505, "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  if (error == beast_http::error::bad_field) return {400, "malformed header field name"};
  if (error == beast_http::error::bad_value) return {400, "malformed header field value"};
  if (error == beast_http::error::bad_content_length) return {400, "malformed or conflicting Content-Length"};
  if (error == beast_http::error::multiple_content_length) return {400, "more than one Content-Length"};
  if (error == beast_http::error::bad_transfer_encoding) return {400, "conflicting Transfer-Encoding"};
  if (error == beast_http::error::bad_chunk) return {400, "malformed chunk"};
  if (error == beast_http::error::bad_chunk_extension) return {400, "malformed chunk extension"};
  if (error == beast_http::error::body_limit) return {413, "the body is too large"};
  return in_body ? RequestFault{400, "malformed chunked body"} : RequestFault{400, "malformed request head"};
}

}  // namespace

/// Takes the facts out of Beast's events; what it does not check, or not strictly enough, is checked here.
class RequestReader::Parser final : public beast_http::basic_parser<true> {
 public:
  Parser(RequestHead& head, KeptHead& kept, tracing::TraceFields& trace, std::string& chunks,
         const HttpOptions& options)
      : head_(head),
        kept_(kept),
        trace_(trace),
        chunks_(chunks),
        max_fields_(options.max_fields),
        takes_trace_(options.tracer != nullptr) {
    header_limit(std::numeric_limits<std::uint32_t>::max());  // the reader looks at its size
    body_limit(options.max_body);
  }

  [[nodiscard]] const std::optional<RequestFault>& fault() const { return fault_; }
  /// Bytes of the present chunk's data that are still to come.
  [[nodiscard]] std::uint64_t chunk_left() const { return chunk_left_; }

 private:
  void refuse(RequestFault fault, ErrorCode& error) {
    fault_ = fault;
    error = beast_http::error::bad_value;
  }

  void on_request_impl(beast_http::verb method, BeastView method_name, BeastView target, int version,
                       ErrorCode& error) override {
    if (target.size() > kMaxTarget) {
      refuse({414, "the request target is longer than 8 KiB"}, error);
      return;
    }
    head_.path.assign(path_of(to_view(target)));
    head_.http_1_1 = version == 11;
    keeps_ = auth_form(head_.path) != AuthForm::none;
    if (keeps_) kept_.set_request(to_view(method_name), to_view(target));
    switch (method) {
      case beast_http::verb::get:
        head_.method = Method::get;
        break;
      case beast_http::verb::head:
        head_.method = Method::head;
        break;
      case beast_http::verb::post:
        head_.method = Method::post;
        break;
      case beast_http::verb::delete_:
        head_.method = Method::del;
        break;
      default:
        head_.method = Method::other;
    }
  }

  void on_response_impl(int, BeastView, int, ErrorCode&) override {}

  void on_field_impl(beast_http::field name, BeastView, BeastView value, ErrorCode& error) override;

  void on_header_impl(ErrorCode& error) override {
    in_trailer_ = true;
    if (head_.http_1_1 && !has_host_) refuse({400, "HTTP/1.1 needs a Host header field"}, error);
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) override {}
  std::size_t on_body_impl(BeastView body, ErrorCode&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t size, BeastView, ErrorCode&) override { chunk_left_ = size; }
  std::size_t on_chunk_body_impl(std::uint64_t, BeastView body, ErrorCode&) override {
    chunks_.append(body.data(), body.size());
    chunk_left_ -= body.size();
    return body.size();
  }
  void on_finish_impl(ErrorCode&) override {}

  RequestHead& head_;
  KeptHead& kept_;
  tracing::TraceFields& trace_;
  std::string& chunks_;
  std::size_t max_fields_;
  bool takes_trace_;
  std::size_t fields_ = 0;
  std::uint64_t chunk_left_ = 0;
  bool in_trailer_ = false;
  bool keeps_ = false;
  bool has_host_ = false;
  bool has_authorization_ = false;
  bool has_length_ = false;
  bool has_encoding_ = false;
  AcceptPreference accept_;
  std::optional<RequestFault> fault_;
};

void RequestReader::Parser::on_field_impl(beast_http::field name, BeastView beast_name, BeastView beast_value,
                                          ErrorCode& error) {
  if (++fields_ > max_fields_) refuse({431, "too many header fields"}, error);
  if (error || in_trailer_) return;
  const std::string_view value = to_view(beast_value);
  if (keeps_) kept_.add_field(to_view(beast_name), value);
  switch (name) {
    case beast_http::field::host:
      if (std::exchange(has_host_, true)) refuse({400, "more than one Host"}, error);
      if (!is_host(value)) refuse({400, "malformed Host"}, error);
      break;
    case beast_http::field::content_length:
      if (std::exchange(has_length_, true) || value.find(',') != std::string_view::npos) {
        refuse({400, "more than one Content-Length"}, error);
      }
      break;
    case beast_http::field::transfer_encoding:
      if (!head_.http_1_1) {
        refuse({400, "Transfer-Encoding in HTTP/1.0"}, error);
      } else if (std::exchange(has_encoding_, true) || !equal_ignoring_case(value, "chunked")) {
        refuse({501, "no Transfer-Encoding but chunked is understood"}, error);
      }
      break;
    case beast_http::field::content_encoding:
      // A proxy that asks about a request passes on what describes that one's body, without the body.
      if (!keeps_ && !equal_ignoring_case(value, "identity")) refuse({415, "no Content-Encoding is understood"}, error);
      break;
    case beast_http::field::expect:
      if (!equal_ignoring_case(value, "100-continue")) refuse({417, "unknown expectation"}, error);
      head_.expects_continue = head_.http_1_1;
      break;
    case beast_http::field::authorization:
      // Who reads the first of several would let in another one than who reads the last. What a proxy only tells of is
      // its application's to refuse.
      if (std::exchange(has_authorization_, true) && !keeps_) refuse({400, "more than one Authorization"}, error);
      if (const std::string_view token = identity::bearer_of(value); !token.empty()) head_.bearer = token;
      break;
    case beast_http::field::accept:
      accept_.add(value);
      head_.wants_problem = accept_.wants_problem();
      break;
    case beast_http::field::unknown:
      if (takes_trace_ && equal_ignoring_case(to_view(beast_name), "traceparent")) trace_.add_parent(value);
      if (takes_trace_ && equal_ignoring_case(to_view(beast_name), "tracestate")) trace_.add_state(value);
      break;
    default:
      break;
  }
}

struct RequestReader::Impl {
  explicit Impl(const HttpOptions& the_options) : options(the_options) { start(); }

  void start() {
    constexpr std::size_t kept = 4096;
    if (chunks.capacity() > kept) chunks = {};
    if (head.path.capacity() > kept) head.path = {};
    chunks.clear();
    std::string path = std::move(head.path);
    path.clear();
    head = {};
    head.path = std::move(path);
    kept_head.clear();
    if (options.tracer != nullptr) trace.clear();
    parser.emplace(head, kept_head, trace, chunks, options);
    body = {};
    read_bytes = 0;
    searched = 0;
    skipped_line = false;
    phase = Phase::idle;
  }

  Event fail(RequestFault why) {
    fault = why;
    phase = Phase::done;
    failed = true;
    return Event::fault;
  }

  Event fail(const ErrorCode& error) {
    return fail(parser_now().fault().value_or(describe(error, phase == Phase::body)));
  }

  /// There is always one; an optional only because each serves one request.
  Parser& parser_now() { return *parser; }  // NOLINT(bugprone-unchecked-optional-access)
  Event read_head(std::string_view& bytes);
  Event read_chunks(std::string_view& bytes);
  Event read_body(std::string_view& bytes);

  const HttpOptions& options;
  RequestHead head;
  KeptHead kept_head;
  tracing::TraceFields trace;
  std::optional<Parser> parser;
  std::string chunks;  ///< a chunked body, decoded
  std::string_view body;
  std::size_t read_bytes = 0;  ///< of this chunked body as sent
  std::size_t searched = 0;    ///< so many of the bytes at hand hold no end of a head or of a line, or too early a one
  std::uint64_t length = 0;    ///< of a body with Content-Length
  RequestFault fault;
  Phase phase = Phase::idle;
  bool skipped_line = false;  ///< an empty one ahead of this request
  bool failed = false;
};

/// Beast is given whole heads only: where it looks at pieces, what it finds wrong depends on them.
RequestReader::Event RequestReader::Impl::read_head(std::string_view& bytes) {
  constexpr std::string_view end_mark = "\r\n\r\n";
  if (!is_method_start(bytes.front())) return fail({400, "malformed request line: bad method"});
  const std::string_view window = bytes.substr(0, options.max_head);
  std::size_t end = window.find(kLineEnd, searched);
  while (end != std::string_view::npos && !window.substr(end).starts_with(end_mark)) {
    if (is_folded(window, end)) return fail(kFolded);
    end = window.find(kLineEnd, end + kLineEnd.size());
  }
  if (end == std::string_view::npos) {
    searched = window.size() - std::min(window.size(), end_mark.size() - 1);
    if (window.size() < options.max_head) return Event::need_more;
    if (window.find("\r\n") == std::string_view::npos) {
      if (window.find(' ') > kMaxTarget) return fail({400, "malformed request line: the method is longer than 8 KiB"});
      return fail({414, "the request target is longer than 8 KiB"});
    }
    return fail({431, "the request head is too large"});
  }
  ErrorCode error;
  bytes.remove_prefix(parser_now().put(boost::asio::const_buffer(bytes.data(), end + end_mark.size()), error));
  // Beast takes all that follows the target for the version, so a space within the target ends up there.
  if (error == beast_http::error::bad_version && !names_version(window)) {
    return fail({400, "malformed request line: bad target or version"});
  }
  if (error) return fail(error);
  head.keep_alive = parser_now().keep_alive();
  const auto content_length = parser_now().content_length();
  length = content_length.value_or(0);
  head.has_length = content_length.has_value() || parser_now().chunked();
  head.has_body = parser_now().chunked() || length != 0;
  searched = 0;
  phase = Phase::body;
  return Event::head;
}

/// Beast is given data as it comes, but the lines between it whole and one more at a time: it looks beyond the end of a
/// line, so what it finds wrong would depend on what has come.
RequestReader::Event RequestReader::Impl::read_chunks(std::string_view& bytes) {
  // Chunks of a byte each are six times as long as what they carry; extensions and trailers have to fit in besides.
  const std::size_t most = 8 * options.max_body + options.max_head;
  // The shortest chunked body has five bytes, and Beast 1.81 asserts that it has them all at once.
  constexpr std::size_t shortest = 5;
  while (!parser_now().is_done()) {
    std::size_t size = bytes.size();
    if (parser_now().chunk_left() == 0) {
      const std::size_t end = bytes.find('\n', std::max(searched, read_bytes == 0 ? shortest - 1 : 0));
      const std::size_t lines = end == std::string_view::npos ? bytes.size() : end + 1;
      if (lines > options.max_head || read_bytes + lines > most) return fail({413, "the chunked body is too large"});
      if (end == std::string_view::npos) {
        searched = bytes.size();
        return Event::need_more;
      }
      size = lines;
      if (ends_folded(bytes.substr(0, size))) return fail(kFolded);
    } else if (size == 0) {
      return Event::need_more;
    } else {
      size = std::min<std::uint64_t>(size, parser_now().chunk_left());
    }
    ErrorCode error;
    const std::size_t used = parser_now().put(boost::asio::const_buffer(bytes.data(), size), error);
    bytes.remove_prefix(used);
    read_bytes += used;
    searched = used == 0 ? size : 0;
    if (error && error != beast_http::error::need_more) return fail(error);
  }
  body = chunks;
  phase = Phase::done;
  return Event::request;
}

RequestReader::Event RequestReader::Impl::read_body(std::string_view& bytes) {
  if (head.has_body && length == 0) return read_chunks(bytes);
  if (bytes.size() < length) return Event::need_more;
  body = bytes.substr(0, length);
  bytes.remove_prefix(body.size());
  phase = Phase::done;
  return Event::request;
}

RequestReader::RequestReader(const HttpOptions& options) : impl_(std::make_unique<Impl>(options)) {}
RequestReader::~RequestReader() = default;

RequestReader::Event RequestReader::read(std::string_view& bytes) {
  Impl& impl = *impl_;
  if (impl.failed) return Event::fault;
  if (impl.phase == Phase::idle) {
    // Some clients end a body with an empty line. More of them are a request that has begun, so that its time runs.
    if (!impl.skipped_line && bytes.starts_with(kLineEnd)) {
      bytes.remove_prefix(kLineEnd.size());
      impl.skipped_line = true;
    }
    if (bytes.empty() || (!impl.skipped_line && bytes == "\r")) return Event::need_more;
    impl.phase = Phase::head;
  }
  if (impl.phase != Phase::head) return impl.read_body(bytes);
  while (bytes.starts_with(kLineEnd)) bytes.remove_prefix(kLineEnd.size());
  if (bytes.empty() || bytes == "\r") return Event::need_more;
  return impl.read_head(bytes);
}

void RequestReader::next() { impl_->start(); }

const RequestHead& RequestReader::head() const { return impl_->head; }
KeptHead& RequestReader::kept_head() { return impl_->kept_head; }
const tracing::TraceFields& RequestReader::trace() const { return impl_->trace; }
std::string_view RequestReader::body() const { return impl_->body; }
const RequestFault& RequestReader::fault() const { return impl_->fault; }
RequestReader::Phase RequestReader::phase() const { return impl_->phase; }

}  // namespace sluice::http
