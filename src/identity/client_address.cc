#include "identity/client_address.h"

#include <cstddef>

#include "base/ascii.h"

namespace sluice::identity {
namespace {

/// Takes what stands behind the last `separator` of `text` off its end. Text in double quotes holds no separator; as
/// the reading begins at the right, a quote that somebody has left open farther to the left hides nothing.
std::string_view take_last(std::string_view& text, char separator) {
  bool quoted = false;
  for (std::size_t i = text.size(); i > 0; --i) {
    const char c = text[i - 1];
    if (c == '"') {
      std::size_t escapes = 0;
      while (quoted && escapes < i - 1 && text[i - 2 - escapes] == '\\') ++escapes;
      if (escapes % 2 == 0) quoted = !quoted;
    } else if (c == separator && !quoted) {
      const std::string_view last = text.substr(i);
      text = text.substr(0, i - 1);
      return last;
    }
  }
  const std::string_view last = text;
  text = {};
  return last;
}

/// The address of one element of Forwarded: for=192.0.2.1;proto=https, for="[2001:db8::1]:443".
std::optional<IpAddress> address_of_element(std::string_view element) {
  std::optional<IpAddress> found;
  bool has_one = false;
  while (!element.empty()) {
    const std::string_view pair = trim(take_last(element, ';'));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || !equal_ignoring_case(trim(pair.substr(0, equals)), "for")) continue;
    if (has_one) return std::nullopt;  // twice: two readers could take either
    has_one = true;
    std::string_view node = trim(pair.substr(equals + 1));
    const bool is_quoted = node.size() >= 2 && node.starts_with('"') && node.ends_with('"');
    if (is_quoted) node = node.substr(1, node.size() - 2);
    found = IpAddress::parse_node(node);
  }
  return found;
}

/// Gives the elements of all lines from right to left.
class FromTheRight {
 public:
  FromTheRight(std::span<const std::string_view> lines, bool is_quoted) : lines_(lines), is_quoted_(is_quoted) {}

  /// Nothing: there are no more. Empty elements are passed over, as lists may have them.
  std::optional<std::string_view> next() {
    for (;;) {
      if (rest_.empty()) {
        if (lines_.empty()) return std::nullopt;
        rest_ = lines_.back();
        lines_ = lines_.first(lines_.size() - 1);
      }
      const std::string_view element = trim(is_quoted_ ? take_last(rest_, ',') : take_plain());
      if (!element.empty()) return element;
    }
  }

 private:
  std::string_view take_plain() {
    const std::size_t comma = rest_.rfind(',');
    const std::string_view last = comma == std::string_view::npos ? rest_ : rest_.substr(comma + 1);
    rest_ = comma == std::string_view::npos ? std::string_view{} : rest_.substr(0, comma);
    return last;
  }

  std::span<const std::string_view> lines_;
  std::string_view rest_;
  bool is_quoted_;
};

}  // namespace

std::optional<IpAddress> client_address(const std::optional<IpAddress>& peer, std::span<const std::string_view> lines,
                                        AddressSyntax syntax, std::span<const Network> trusted) {
  std::optional<IpAddress> client = peer;
  const auto is_trusted = [&] { return !client || contains(trusted, *client); };
  if (syntax == AddressSyntax::single) {
    if (!is_trusted() || lines.size() != 1) return client;
    const std::optional<IpAddress> told = IpAddress::parse_node(trim(lines.front()));
    return told ? told : client;
  }
  FromTheRight elements(lines, syntax == AddressSyntax::forwarded);
  while (is_trusted()) {
    const std::optional<std::string_view> element = elements.next();
    if (!element) break;
    const std::optional<IpAddress> told =
        syntax == AddressSyntax::forwarded ? address_of_element(*element) : IpAddress::parse_node(*element);
    if (!told) break;
    client = told;
  }
  return client;
}

}  // namespace sluice::identity
