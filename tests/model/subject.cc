#include "tests/model/subject.h"

#include <stdexcept>
#include <utility>

#include "algorithm/calendar.h"
#include "algorithm/compiled_limit.h"

namespace sluice::model {

namespace {

using algorithm::CompiledLimit;
using algorithm::Tick;
using algorithm::Verdict;
using algorithm::View;

CompiledLimit compiled(const Limit& limit, Tick tick) {
  auto result = CompiledLimit::compile(limit, tick, &algorithm::open_calendar);
  if (!result) throw std::invalid_argument(result.error().message);
  return *std::move(result);
}

// The algorithms whose state has a fixed size.
class CompiledSubject final : public Subject {
 public:
  CompiledSubject(const Limit& limit, Tick tick) : tick_(tick), compiled_(compiled(limit, tick)) {}

  Verdict judge(std::int64_t now, std::uint64_t cost) const override { return compiled_.judge(state_, now, cost); }
  void take(std::int64_t now, std::uint64_t cost) override { compiled_.take(state_, now, cost); }
  void count_denied(std::int64_t now, std::uint64_t cost) override { compiled_.count_denied(state_, now, cost); }
  View view(std::int64_t now) const override { return compiled_.view(state_, now); }
  void refund(std::int64_t now, std::uint64_t cost, std::optional<std::int64_t> at) override {
    compiled_.refund(state_, now, cost, at);
  }
  void settle(std::int64_t now, std::uint64_t reserved, std::uint64_t actual, std::optional<std::int64_t> at) override {
    compiled_.settle(state_, now, reserved, actual, at);
  }
  void penalize(std::int64_t now, std::uint64_t cost) override { compiled_.penalize(state_, now, cost); }
  void set_limit(const Limit& limit, std::int64_t now) override {
    CompiledLimit next = compiled(limit, tick_);
    next.convert(state_, compiled_, now);
    compiled_ = std::move(next);
  }
  void reset() override { state_ = {}; }
  std::unique_ptr<Subject> clone() const override { return std::make_unique<CompiledSubject>(*this); }

 private:
  Tick tick_;
  CompiledLimit compiled_;
  CompiledLimit::State state_;
};

}  // namespace

std::unique_ptr<Subject> make_subject(const Limit& limit, Tick tick) {
  return std::make_unique<CompiledSubject>(limit, tick);
}

}  // namespace sluice::model
