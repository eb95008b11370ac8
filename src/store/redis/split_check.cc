#include "store/redis/split_check.h"

#include <algorithm>

#include "store/admission.h"

namespace sluice::store::redis {

namespace {
const Verb kPeek = Verb::peek();
}  // namespace

SplitCheck::Part& SplitCheck::part_of(std::uint64_t group) {
  for (std::size_t i = 0; i < used_; ++i) {
    if (parts_[i]->group == group) return *parts_[i];
  }
  if (used_ == parts_.size()) parts_.push_back(std::make_unique<Part>(*this));
  Part& part = *parts_[used_++];
  part.group = group;
  part.own_charges.clear();
  part.limits.clear();
  part.places_.clear();
  part.state_ = Part::State::fresh;
  part.is_leaky_ = false;
  part.verb = is_peek_ ? &kPeek : nullptr;
  part.failure = Failure::none;
  part.admitted = false;
  return part;
}

void SplitCheck::start(Check& outer, Limits limits, const std::vector<std::uint64_t>& groups, Time caller,
                       std::int64_t deadline) {
  outer_ = &outer;
  is_peek_ = outer.verb != nullptr;
  charges_.assign(outer.charges.begin(), outer.charges.end());
  caller_ = caller;
  deadline_ = deadline;
  used_ = 0;
  pending_ = 0;
  for (std::size_t i = 0; i < charges_.size(); ++i) {
    Part& part = part_of(groups[i]);
    part.places_.push_back(static_cast<std::uint32_t>(i));
    Charge charge = charges_[i];
    // Whether quotas deny can only be told of all together; until then each is taken where it fits.
    if (charge.enforcement == Enforcement::quota) charge.enforcement = Enforcement::shadow;
    const bool is_leaky = charge.limit->numbers.algorithm == Algorithm::leaky_bucket && charge.cost > 0;
    if (is_leaky && !is_peek_) part.is_leaky_ = true;
    part.own_charges.push_back(charge);
    part.limits.push_back(limits[i]);
  }
  for (std::size_t i = 0; i < used_; ++i) {
    Part& part = *parts_[i];
    const std::size_t size = part.own_charges.size();
    part.own_decisions_.assign(size, {});
    part.own_untaken_.assign(size, {});
    part.own_leases_.assign(size, 0);
    part.charges = part.own_charges;
    part.decisions = part.own_decisions_;
    part.untaken = part.own_untaken_;
    part.leases = part.own_leases_;
  }
  decisions_.assign(charges_.size(), {});
  leases_.assign(charges_.size(), 0);
}

// What is to be given back must be named even then.
void SplitCheck::withdraw() {
  outer_ = nullptr;
  kept_limits_.clear();
  kept_keys_.clear();
  const auto keep = [this](Charge& charge) {
    kept_limits_.push_back(*charge.limit);
    kept_keys_.emplace_back(charge.key);
    charge.limit = &kept_limits_.back();
    charge.key = kept_keys_.back();
  };
  std::ranges::for_each(charges_, keep);
  for (std::size_t i = 0; i < used_; ++i) std::ranges::for_each(parts_[i]->own_charges, keep);
}

void SplitCheck::go() {
  // What fails at once completes within; only the end of this looks on.
  submitting_ = true;
  for (std::size_t i = 0; i < used_; ++i) {
    if (!parts_[i]->is_leaky_) submit(*parts_[i]);
  }
  submitting_ = false;
  if (pending_ == 0) advance();
}

void SplitCheck::submit(Part& part) {
  part.state_ = Part::State::pending;
  ++pending_;
  part.failure = owner_.submit_part(*this, part);
  if (part.failure != Failure::none) completed(part);
}

void SplitCheck::completed(Part& part) {
  part.state_ = Part::State::over;
  --pending_;
  if (pending_ == 0 && !submitting_) advance();
}

bool SplitCheck::is_refused() const {
  return std::any_of(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(used_), [](const auto& part) {
    return part->state_ == Part::State::over && (part->failure != Failure::none || !part->admitted);
  });
}

// The next of the steps that come one after the other; if the request is refused already, it only looks.
void SplitCheck::advance() {
  for (std::size_t i = 0; i < used_; ++i) {
    Part& part = *parts_[i];
    if (part.state_ != Part::State::fresh) continue;
    if (is_refused()) part.verb = &kPeek;
    submitting_ = true;
    submit(part);
    submitting_ = false;
    if (pending_ > 0) return;
  }
  finish();
}

void SplitCheck::finish() {
  Failure failure = Failure::none;
  for (std::size_t i = 0; i < used_; ++i) {
    Part& part = *parts_[i];
    if (part.failure == Failure::none) {
      tell(part, false);
    } else if (failure == Failure::none) {
      failure = part.failure;
    }
  }
  const bool admitted = failure == Failure::none && !is_refused() && admission_of(charges_, decisions_).admitted();
  if (!admitted) undo();
  if (outer_ != nullptr) {
    outer_->failure = failure;
    outer_->admitted = admitted;
    std::ranges::copy(decisions_, outer_->decisions.begin());
    if (!outer_->leases.empty()) std::ranges::copy(leases_, outer_->leases.begin());
  }
  owner_.split_done(*this);
}

void SplitCheck::undo() {
  for (std::size_t i = 0; i < used_; ++i) {
    Part& part = *parts_[i];
    if (part.failure != Failure::none) continue;
    for (std::size_t k = 0; part.admitted && part.verb == nullptr && k < part.own_charges.size(); ++k) {
      const bool is_taken = part.own_decisions_[k].allowed && part.own_charges[k].cost > 0;
      if (is_taken) owner_.give_back(*this, part, k, undoing(part, k));
    }
    tell(part, true);
  }
  std::ranges::fill(leases_, 0);
}

std::optional<Verb> SplitCheck::undoing(const Part& part, std::size_t charge) {
  const Charge& what = part.own_charges[charge];
  switch (what.limit->numbers.algorithm) {
    case Algorithm::leaky_bucket:
      return std::nullopt;
    case Algorithm::concurrency:
      return Verb::release(part.own_leases_[charge], what.cost);
    default:
      return Verb::refund(what.cost, part.answered_at);
  }
}

// What a part was told, in the places of the request.
void SplitCheck::tell(Part& part, bool untaken) {
  for (std::size_t k = 0; k < part.places_.size(); ++k) {
    const std::uint32_t place = part.places_[k];
    Decision& decision = decisions_[place];
    decision = untaken ? part.own_untaken_[k] : part.own_decisions_[k];
    decision.which = place;
    leases_[place] = part.own_leases_[k];
  }
}

}  // namespace sluice::store::redis
