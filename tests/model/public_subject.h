// The public limiters of include/sluice as a subject of the models, in ns and with a clock that does not step back.
#pragma once

#include <memory>

#include "algorithm/ticks.h"
#include "sluice/limit.h"
#include "tests/model/subject.h"

namespace sluice::model {

/// Throws std::invalid_argument unless `tick` is a nanosecond.
[[nodiscard]] std::unique_ptr<Subject> make_public_subject(const Limit& limit, algorithm::Tick tick);
/// The same by one key of many in a Keyed.
[[nodiscard]] std::unique_ptr<Subject> make_keyed_subject(const Limit& limit, algorithm::Tick tick);

}  // namespace sluice::model
