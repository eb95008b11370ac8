// A second exact model, in C++: sections 3 and 5 of docs/semantics.md as the shortest programs that say the same,
// written apart from src/algorithm and sharing none of it but the calendar. It is slow (each entry is kept and each is
// looked at) and fast enough for millions of random operations, which the Python model is not. It is itself checked by
// the vectors.
#pragma once

#include <memory>

#include "algorithm/ticks.h"
#include "sluice/limit.h"
#include "tests/model/subject.h"

namespace sluice::model {

[[nodiscard]] std::unique_ptr<Subject> make_slow_subject(const Limit& limit, algorithm::Tick tick);

}  // namespace sluice::model
