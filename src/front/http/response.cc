#include "front/http/response.h"

#include <array>
#include <ctime>

#include "front/http/json_text.h"

namespace sluice::http {
namespace {

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

}  // namespace

std::string_view DateCache::text(std::int64_t utc) {
  constexpr std::int64_t ticks = 1'000'000'000;
  const std::int64_t second = utc / ticks;
  if (second != second_ || text_.empty()) {
    second_ = second;
    const std::time_t time = second;
    std::tm parts{};
    std::array<char, 40> buffer{};
    gmtime_r(&time, &parts);
    constexpr std::array<std::string_view, 7> days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    text_ = days[static_cast<std::size_t>(parts.tm_wday)];
    text_.append(buffer.data(), std::strftime(buffer.data(), buffer.size(), ", %d ", &parts));
    text_ += months[static_cast<std::size_t>(parts.tm_mon)];  // never in the language of the locale
    text_.append(buffer.data(), std::strftime(buffer.data(), buffer.size(), " %Y %H:%M:%S GMT", &parts));
  }
  return text_;
}

std::string_view reason_phrase(unsigned status) {
  switch (status) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return status < 500 ? "Client Error" : "Server Error";
  }
}

void append_head(const ResponseHead& head, std::span<const front::Header> fields, std::string& out) {
  out += "HTTP/1.1 ";
  append_unsigned(out, head.status);
  out += ' ';
  out += reason_phrase(head.status);
  out += "\r\nDate: ";
  out += head.date;
  out += "\r\n";
  if (head.status != 204) {  // which has neither
    if (!head.content_type.empty()) append_field(out, "Content-Type", head.content_type);
    out += "Content-Length: ";
    append_unsigned(out, head.content_length);
    out += "\r\n";
  }
  if (!head.allow.empty()) append_field(out, "Allow", head.allow);
  if (head.no_store) append_field(out, "Cache-Control", "no-store");
  for (const front::Header& field : fields) append_field(out, field.name, field.value);
  if (head.connection == ConnectionField::close) append_field(out, "Connection", "close");
  if (head.connection == ConnectionField::keep_alive) append_field(out, "Connection", "keep-alive");
  out += "\r\n";
}

}  // namespace sluice::http
