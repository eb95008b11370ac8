#include "store/redis/redirect.h"

#include <charconv>

#include "store/redis/key_slot.h"

namespace sluice::store::redis {

namespace {

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::optional<Redirect> parse_redirect(std::string_view error) {
  if (error.starts_with("TRYAGAIN")) return Redirect{};
  if (error.starts_with("CLUSTERDOWN")) return Redirect{.is_down = true};
  Redirect redirect;
  if (error.starts_with("MOVED ")) {
    redirect.kind = Redirect::Kind::moved;
    error.remove_prefix(6);
  } else if (error.starts_with("ASK ")) {
    redirect.kind = Redirect::Kind::ask;
    error.remove_prefix(4);
  } else {
    return std::nullopt;
  }
  // "3999 127.0.0.1:6381"; the host may be an IPv6 address without brackets, a name, or empty.
  const std::size_t space = error.find(' ');
  const std::size_t colon = error.rfind(':');
  if (space == std::string_view::npos || colon == std::string_view::npos || colon < space) return std::nullopt;
  if (!read_number(error.substr(0, space), redirect.slot) || redirect.slot >= kSlots) return std::nullopt;
  redirect.to = {.host = std::string(error.substr(space + 1, colon - space - 1))};
  if (!read_number(error.substr(colon + 1), redirect.to.port) || redirect.to.port == 0) return std::nullopt;
  return redirect;
}

}  // namespace sluice::store::redis
