#include "load/traffic.h"

#include <charconv>
#include <cmath>

namespace sluice::load {
namespace {

constexpr std::uint64_t kMostValues = 1'000'000'000'000;

template <typename T>
bool read_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

// The place of the first `wanted` in `text` that is not doubled; doubled ones become one in `plain`.
std::size_t find_single(std::string_view text, char wanted, std::string& plain) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == wanted) {
      if (i + 1 == text.size() || text[i + 1] != wanted) return i;
      ++i;
    }
    plain += text[i];
  }
  return std::string_view::npos;
}

std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    plain += text[i];
  }
  return plain;
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == ',') {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

}  // namespace

// Rejection-inversion (Hörmann, Derflinger 1996): x^-exponent lies above the bars of the ranks, and its area is
// inverted.
Zipf::Zipf(double exponent, std::uint64_t count) : exponent_(exponent), count_(count) {
  area_from_ = area(1.5) - 1;
  area_to_ = area(static_cast<double>(count) + 0.5);
  head_ = 2 - inverse_area(area(2.5) - std::pow(2, -exponent));
}

double Zipf::area(double x) const {
  const double log_x = std::log(x);
  const double t = (1 - exponent_) * log_x;
  return (std::abs(t) < 1e-9 ? 1 + t / 2 : std::expm1(t) / t) * log_x;
}

double Zipf::inverse_area(double y) const {
  const double t = std::max(y * (1 - exponent_), -1.0);
  return std::exp((std::abs(t) < 1e-9 ? 1 - t / 2 : std::log1p(t) / t) * y);
}

std::uint64_t Zipf::rank_of(double u) const {
  const double x = std::round(inverse_area(u));
  if (!(x >= 1)) return 1;
  return x >= static_cast<double>(count_) ? count_ : static_cast<std::uint64_t>(x);
}

bool Zipf::is_accepted(double u, std::uint64_t rank) const {
  const auto k = static_cast<double>(rank);
  return k - inverse_area(u) <= head_ || u >= area(k + 0.5) - std::pow(k, -exponent_);
}

Result<Values> Values::parse(std::string_view text) {
  Values values;
  const std::size_t open = find_single(text, '{', values.before_);
  if (open == std::string_view::npos) return values;
  const std::size_t close = text.find('}', open);
  if (close == std::string_view::npos) {
    return Error{"a brace is not closed in '" + std::string(text) + "'; {{ is a brace of the value itself"};
  }
  if (const auto read = values.read_kind(text.substr(open + 1, close - open - 1)); !read) return read.error();
  values.after_ = text.substr(close + 1);
  if (values.after_.find('{') != std::string::npos) {
    return Error{"one placeholder a value, found more in '" + std::string(text) + "'"};
  }
  return values;
}

Result<bool> Values::read_kind(std::string_view text) {
  const Error problem{"expected {seq:N}, {uniform:N}, {zipf:EXPONENT:N} or {new}, found '{" + std::string(text) + "}'"};
  if (text == "new") {
    kind_ = Kind::fresh;
    // So that no two runs have one in common.
    std::random_device device;
    before_ += std::to_string(device()) + std::to_string(device()) + "-";
    return true;
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return problem;
  const std::string_view name = text.substr(0, colon);
  std::string_view rest = text.substr(colon + 1);
  if (name == "seq") {
    kind_ = Kind::sequence;
  } else if (name == "uniform") {
    kind_ = Kind::uniform;
  } else if (name == "zipf") {
    kind_ = Kind::zipf;
    const std::size_t second = rest.find(':');
    if (second == std::string_view::npos || !read_number(rest.substr(0, second), exponent_)) return problem;
    if (!(exponent_ >= 0 && exponent_ <= 10)) return Error{"the exponent of zipf must be from 0 to 10"};
    rest = rest.substr(second + 1);
  } else {
    return problem;
  }
  if (!read_number(rest, count_)) return problem;
  if (count_ < 1 || count_ > kMostValues) {
    return Error{"the number of values must be from 1 to " + std::to_string(kMostValues) + ", found '{" +
                 std::string(text) + "}'"};
  }
  zipf_ = Zipf(exponent_, count_);
  return true;
}

void Values::append_next(std::string& out, std::mt19937_64& random) {
  out += before_;
  switch (kind_) {
    case Kind::constant:
      break;
    case Kind::sequence:
      out += std::to_string(next_);
      next_ = next_ + 1 == count_ ? 0 : next_ + 1;
      break;
    case Kind::uniform:
      out += std::to_string(std::uniform_int_distribution<std::uint64_t>(0, count_ - 1)(random));
      break;
    case Kind::zipf:
      out += std::to_string(zipf_(random) - 1);
      break;
    case Kind::fresh:
      out += std::to_string(next_++);
      break;
  }
  out += after_;
}

Result<Traffic> Traffic::parse(const std::vector<std::string>& descriptors, std::uint64_t seed) {
  Traffic traffic(seed);
  for (const std::string& text : descriptors) {
    auto& values = traffic.values_.emplace_back();
    auto& entries = traffic.current_.emplace_back();
    for (const std::string_view part : split_at_commas(text)) {
      const std::size_t equals = part.find('=');
      if (equals == std::string_view::npos || equals == 0) {
        return Error{"expected key=value[,key=value…], found '" + text + "'"};
      }
      auto parsed = Values::parse(without_escapes(part.substr(equals + 1)));
      if (!parsed) return parsed.error();
      values.push_back(*std::move(parsed));
      entries.emplace_back(without_escapes(part.substr(0, equals)), "");
    }
  }
  return traffic;
}

const Descriptors& Traffic::next() {
  for (std::size_t d = 0; d < values_.size(); ++d) {
    for (std::size_t e = 0; e < values_[d].size(); ++e) {
      std::string& value = current_[d][e].second;
      value.clear();
      values_[d][e].append_next(value, random_);
    }
  }
  return current_;
}

}  // namespace sluice::load
