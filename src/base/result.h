// A value or an error: for failures that are expected and must be told to somebody.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace sluice {

/// A failure as a sentence for a person: what is wrong, where, and how to mend it.
struct Error {
  std::string message;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] explicit operator bool() const { return held_.index() == 0; }
  /// Precondition: holds a value.
  [[nodiscard]] T& operator*() & { return *std::get_if<0>(&held_); }
  [[nodiscard]] const T& operator*() const& { return *std::get_if<0>(&held_); }
  [[nodiscard]] T&& operator*() && { return std::move(*std::get_if<0>(&held_)); }
  [[nodiscard]] T* operator->() { return std::get_if<0>(&held_); }
  [[nodiscard]] const T* operator->() const { return std::get_if<0>(&held_); }
  /// Precondition: holds an error.
  [[nodiscard]] const Error& error() const { return *std::get_if<1>(&held_); }

 private:
  std::variant<T, Error> held_;
};

}  // namespace sluice
