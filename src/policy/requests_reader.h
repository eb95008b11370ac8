// Reads `requests` of a policy file.
#pragma once

#include <memory>
#include <string_view>

#include "policy/findings.h"
#include "request/rules.h"
#include "yaml/tree.h"

namespace sluice::policy {

/// Reads `requests`; `domain` is the file's, and the default. Opens the files of keys that it names, relative to the
/// policy file's folder. Null when there were errors; all are added to `findings`.
[[nodiscard]] std::shared_ptr<const request::Rules> read_requests(const yaml::Node& node, std::string_view domain,
                                                                  Findings& findings);

}  // namespace sluice::policy
