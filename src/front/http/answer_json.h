// Pieces that answers to checks and to verbs have in common.
#pragma once

#include <string>
#include <string_view>

#include "policy/rule.h"
#include "sluice/decision.h"
#include "sluice/wait.h"

namespace sluice::http {

/// `,"name":`
void append_name(std::string& out, std::string_view name);

/// A member with seconds, or null for never.
void append_wait(std::string& out, std::string_view name, Wait wait);

/// limit, remaining, reset_after; retry_after when it is not `allowed`, else delay where the limit has one.
void append_figures(std::string& out, const policy::Rule& rule, const Decision& decision, bool allowed);

}  // namespace sluice::http
