// What a load asks for: descriptors with values that are the same, in turn, uniformly random or Zipf-distributed.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace sluice::load {

/// Ranks 1 … n with probability proportional to 1/rank^exponent, by rejection: no table, a few logarithms a draw.
class Zipf {
 public:
  /// `exponent` 0 … 10, `count` from 1.
  Zipf(double exponent, std::uint64_t count);
  template <typename Random>
  std::uint64_t operator()(Random& random) {
    for (;;) {
      const double u = area_from_ + std::generate_canonical<double, 53>(random) * (area_to_ - area_from_);
      const std::uint64_t rank = rank_of(u);
      if (is_accepted(u, rank)) return rank;
    }
  }

 private:
  [[nodiscard]] double area(double x) const;
  [[nodiscard]] double inverse_area(double y) const;
  [[nodiscard]] std::uint64_t rank_of(double u) const;
  [[nodiscard]] bool is_accepted(double u, std::uint64_t rank) const;

  double exponent_;
  std::uint64_t count_;
  double area_from_;
  double area_to_;
  double head_;
};

/// The values of one entry.
class Values {
 public:
  /// A text; or {seq:N} (0 … N − 1 in turn), {uniform:N}, {zipf:EXPONENT:N} (0 is the most frequent), or {new} (one
  /// never used before, different in every run), with any text around it. `{{` is a brace.
  [[nodiscard]] static Result<Values> parse(std::string_view text);
  void append_next(std::string& out, std::mt19937_64& random);

 private:
  enum class Kind : std::uint8_t { constant, sequence, uniform, zipf, fresh };
  [[nodiscard]] Result<bool> read_kind(std::string_view text);

  std::string before_;
  std::string after_;
  Kind kind_ = Kind::constant;
  std::uint64_t count_ = 1;
  std::uint64_t next_ = 0;
  double exponent_ = 0;
  Zipf zipf_{0, 1};
};

/// One request's descriptors: of each, key and value in order.
using Descriptors = std::vector<std::vector<std::pair<std::string, std::string>>>;

/// Makes requests. Not thread-safe.
class Traffic {
 public:
  /// Each of `descriptors` is "key=values,key=values…" with Values; a backslash before a comma or backslash makes it a
  /// part of the value. `seed`: the same one gives the same requests, but for {new}.
  [[nodiscard]] static Result<Traffic> parse(const std::vector<std::string>& descriptors, std::uint64_t seed);
  /// The next request; valid until the next call.
  [[nodiscard]] const Descriptors& next();
  /// Of each descriptor its keys, as a policy would nest them.
  [[nodiscard]] const Descriptors& shape() const { return current_; }

 private:
  explicit Traffic(std::uint64_t seed) : random_(seed) {}

  std::vector<std::vector<Values>> values_;
  Descriptors current_;
  std::mt19937_64 random_;
};

}  // namespace sluice::load
