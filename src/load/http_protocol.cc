#include "load/http_protocol.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <utility>

#include "front/http/json_reader.h"
#include "front/http/json_text.h"

namespace sluice::load {
namespace {

namespace beast = boost::beast;

constexpr unsigned kAllowed = 200;
constexpr unsigned kTooMany = 429;
constexpr std::size_t kMostToQuote = 120;

constexpr int kDeepest = 32;  // of an answer's values in one another

// Leaves out one value.
bool skip(http::JsonReader& reader, int depth = 0) {
  if (depth > kDeepest) return false;
  std::string_view text;
  bool flag = false;
  switch (reader.peek()) {
    case http::JsonType::object:
      if (!reader.begin_object()) return false;
      while (reader.next_member(text)) {
        if (!skip(reader, depth + 1)) return false;
      }
      return !reader.failed();
    case http::JsonType::array:
      if (!reader.begin_array()) return false;
      while (reader.next_element()) {
        if (!skip(reader, depth + 1)) return false;
      }
      return !reader.failed();
    case http::JsonType::string:
      return reader.read_string(text);
    case http::JsonType::number:
      return reader.read_number(text);
    case http::JsonType::boolean:
      return reader.read_bool(flag);
    case http::JsonType::null:
      return reader.read_null();
    case http::JsonType::none:
      break;
  }
  return false;
}

}  // namespace

void append_check_request(std::string& out, std::string_view domain, const Descriptors& descriptors,
                          std::uint64_t cost) {
  out += R"({"domain":)";
  http::append_json_string(out, domain);
  out += R"(,"descriptors":[)";
  for (const auto& descriptor : descriptors) {
    out += '[';
    for (const auto& [key, value] : descriptor) {
      out += R"({"key":)";
      http::append_json_string(out, key);
      out += R"(,"value":)";
      http::append_json_string(out, value);
      out += "},";
    }
    out.back() = ']';
    out += ',';
  }
  out.back() = ']';
  if (cost != 1) {
    out += R"(,"cost":)";
    http::append_unsigned(out, cost);
  }
  out += '}';
}

Outcome read_check_answer(unsigned status, std::string_view body) {
  std::string arena;
  http::JsonReader reader(body, arena);
  std::optional<bool> allowed;
  std::string_view name;
  std::string_view source;
  Outcome outcome;
  bool read = reader.peek() == http::JsonType::object && reader.begin_object();
  while (read && reader.next_member(name)) {
    if (name == "allowed") {
      read = reader.read_bool(allowed.emplace());
    } else if (name == "source") {
      read = reader.read_string(source);
    } else {
      outcome.names_limit |= name == "limit_name";
      read = skip(reader);
    }
  }
  if (!read || reader.failed() || !allowed) {
    outcome.error = "HTTP status " + std::to_string(status);
    if (status == kAllowed || status == kTooMany) outcome.error += " with an answer that is not of /v1/check";
    if (!body.empty()) outcome.error += ": " + std::string(body.substr(0, kMostToQuote));
    return outcome;
  }
  if (!*allowed) {
    outcome.how = source == "fallback_deny" ? Answered::denied_blind : Answered::denied;
  } else if (source == "fallback_local") {
    outcome.how = Answered::admitted_local;
  } else if (source == "fallback_allow") {
    outcome.how = Answered::admitted_blind;
  } else {
    outcome.how = Answered::admitted;
  }
  return outcome;
}

class HttpProtocol::Reader {
 public:
  beast::http::response_parser<beast::http::string_body> parser;
};

HttpProtocol::HttpProtocol(Owner& owner, std::string host) : owner_(owner), host_(std::move(host)) {}

HttpProtocol::~HttpProtocol() = default;

void HttpProtocol::open() {
  asked_.clear();
  reader_.reset();
  unread_.clear();
  output_.clear();
  fault_.clear();
}

void HttpProtocol::ask(Ticket ticket, std::string_view domain, const Descriptors& descriptors, std::uint64_t cost) {
  body_.clear();
  append_check_request(body_, domain, descriptors, cost);
  output_ += "POST /v1/check HTTP/1.1\r\nHost: ";
  output_ += host_;
  output_ += "\r\nContent-Type: application/json\r\nContent-Length: ";
  http::append_unsigned(output_, body_.size());
  output_ += "\r\n\r\n";
  output_ += body_;
  asked_.push_back(ticket);
}

bool HttpProtocol::feed(std::string_view bytes) {
  unread_ += bytes;
  while (!unread_.empty()) {
    if (reader_ == nullptr) {
      reader_ = std::make_unique<Reader>();
      reader_->parser.eager(true);
    }
    beast::error_code error;
    const std::size_t used = reader_->parser.put(boost::asio::buffer(unread_), error);
    unread_.erase(0, used);
    if (error && error != beast::http::error::need_more) {
      fault_ = "the answer is no HTTP/1.1: " + error.message();
      return false;
    }
    if (!reader_->parser.is_done()) {
      if (used == 0) return true;
      continue;
    }
    const auto answer = reader_->parser.release();
    reader_.reset();
    if (asked_.empty()) {
      fault_ = "an answer that nobody asked for: HTTP status " + std::to_string(answer.result_int());
      return false;
    }
    const Ticket ticket = asked_.front();
    asked_.pop_front();
    owner_.answered(ticket, read_check_answer(answer.result_int(), answer.body()));
    if (!answer.keep_alive()) {
      fault_ = "the daemon closes the connection";
      return false;
    }
  }
  return true;
}

}  // namespace sluice::load
