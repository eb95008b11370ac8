// GoogleMock matchers for decisions, for tests of programs that use limiters. Needs gmock; no part of the library does.
#pragma once

#include <gmock/gmock.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <ostream>
#include <type_traits>
#include <utility>

#include "sluice/decision.h"
#include "sluice/wait.h"

namespace sluice {

namespace internal {

// What a verb answers: a decision, or something that has one (a lease, a permit, what acquire_up_to granted).
template <typename T>
concept HasDecision = requires(const T& of) {
  { of.decision() } -> std::convertible_to<const Decision&>;
} || requires(const T& of) {
  { of.decision } -> std::convertible_to<const Decision&>;
};

template <typename T>
const Decision& decision_in(const T& of) {
  if constexpr (std::is_same_v<T, Decision>) {
    return of;
  } else if constexpr (requires { of.decision(); }) {
    return of.decision();
  } else {
    return of.decision;
  }
}

class VerdictMatcher {
 public:
  enum class Verdict : std::uint8_t { allowed, denied, never };
  explicit VerdictMatcher(Verdict verdict) : verdict_(verdict) {}

  // NOLINTBEGIN(readability-identifier-naming): GoogleMock's names
  template <typename T>
  bool MatchAndExplain(const T& of, ::testing::MatchResultListener* listener) const {
    const Decision& decision = decision_in(of);
    if constexpr (!std::is_same_v<T, Decision>) *listener << "which is " << decision;
    switch (verdict_) {
      case Verdict::allowed:
        return decision.allowed;
      case Verdict::denied:
        return !decision.allowed;
      case Verdict::never:
        break;
    }
    return !decision.allowed && decision.retry_after.is_never();
  }
  void DescribeTo(std::ostream* out) const { *out << "is " << text(); }
  void DescribeNegationTo(std::ostream* out) const { *out << "isn't " << text(); }
  // NOLINTEND(readability-identifier-naming)

 private:
  [[nodiscard]] const char* text() const {
    switch (verdict_) {
      case Verdict::allowed:
        return "allowed";
      case Verdict::denied:
        return "denied";
      case Verdict::never:
        break;
    }
    return "denied for ever (retry_after never)";
  }
  Verdict verdict_;
};

// A field of a decision, by a matcher of its type.
template <typename Field>
class FieldMatcher {
 public:
  FieldMatcher(const char* name, Field Decision::* field, ::testing::Matcher<const Field&> matcher)
      : name_(name), field_(field), matcher_(std::move(matcher)) {}

  // NOLINTBEGIN(readability-identifier-naming): GoogleMock's names
  template <typename T>
  bool MatchAndExplain(const T& of, ::testing::MatchResultListener* listener) const {
    const Field& value = decision_in(of).*field_;
    *listener << "whose " << name_ << " is " << value;
    return matcher_.Matches(value);
  }
  void DescribeTo(std::ostream* out) const {
    *out << "has a " << name_ << " that ";
    matcher_.DescribeTo(out);
  }
  void DescribeNegationTo(std::ostream* out) const {
    *out << "has a " << name_ << " that ";
    matcher_.DescribeNegationTo(out);
  }
  // NOLINTEND(readability-identifier-naming)

 private:
  const char* name_;
  Field Decision::* field_;
  ::testing::Matcher<const Field&> matcher_;
};

template <typename Rep, typename Period>
::testing::Matcher<const Wait&> wait_matcher(std::chrono::duration<Rep, Period> duration) {
  return ::testing::Eq(Wait(std::chrono::duration_cast<std::chrono::nanoseconds>(duration)));
}
template <typename M>
::testing::Matcher<const Wait&> wait_matcher(const M& matcher) {
  return ::testing::SafeMatcherCast<const Wait&>(matcher);
}

template <typename Field, typename M>
auto field_matcher(const char* name, Field Decision::* field, const M& matcher) {
  if constexpr (std::is_same_v<Field, Wait>) {
    return ::testing::MakePolymorphicMatcher(FieldMatcher<Field>(name, field, wait_matcher(matcher)));
  } else {
    return ::testing::MakePolymorphicMatcher(
        FieldMatcher<Field>(name, field, ::testing::SafeMatcherCast<const Field&>(matcher)));
  }
}

}  // namespace internal

// The matchers take a Decision, or what holds one: a lease, a permit, a Granted. Those with a parameter take a value or
// a matcher of the field; for waits a value is a duration or a Wait:
//
//     EXPECT_THAT(bucket.try_acquire(), sluice::IsAllowed());
//     EXPECT_THAT(bucket.try_acquire(), AllOf(sluice::IsDenied(), sluice::RetryAfter(100ms)));
//     EXPECT_THAT(bucket.try_acquire(1000), sluice::NeverFits());
//     EXPECT_THAT(bucket.peek(0), sluice::Remaining(testing::Ge(3)));
//     EXPECT_THAT(bucket.peek(0), sluice::ResetAfter(testing::Lt(sluice::Wait(3s))));
//
// NOLINTBEGIN(readability-identifier-naming): named as GoogleMock's are

/// It may go on.
inline auto IsAllowed() {
  return ::testing::MakePolymorphicMatcher(internal::VerdictMatcher(internal::VerdictMatcher::Verdict::allowed));
}
/// It may not; now, or at any time.
inline auto IsDenied() {
  return ::testing::MakePolymorphicMatcher(internal::VerdictMatcher(internal::VerdictMatcher::Verdict::denied));
}
/// It is denied, and no waiting helps.
inline auto NeverFits() {
  return ::testing::MakePolymorphicMatcher(internal::VerdictMatcher(internal::VerdictMatcher::Verdict::never));
}

template <typename M>
auto RetryAfter(const M& matcher) {
  return internal::field_matcher("retry_after", &Decision::retry_after, matcher);
}
template <typename M>
auto ResetAfter(const M& matcher) {
  return internal::field_matcher("reset_after", &Decision::reset_after, matcher);
}
template <typename M>
auto Delay(const M& matcher) {
  return internal::field_matcher("delay", &Decision::delay, matcher);
}
template <typename M>
auto Remaining(const M& matcher) {
  return internal::field_matcher("remaining", &Decision::remaining, matcher);
}
template <typename M>
auto LimitIs(const M& matcher) {
  return internal::field_matcher("limit", &Decision::limit, matcher);
}
template <typename M>
auto Marked(const M& matcher) {
  return internal::field_matcher("mark", &Decision::mark, matcher);
}

// NOLINTEND(readability-identifier-naming)

}  // namespace sluice
