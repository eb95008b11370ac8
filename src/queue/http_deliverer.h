// Delivers over HTTP/1.1, in the clear or over TLS.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>

#include "http_client/upstream.h"
#include "queue/deliverer.h"

namespace sluice::queue {

using http_client::make_trust;
using http_client::parse_upstream;
using http_client::TrustPtr;
using http_client::Upstream;

/// `trust`: may be null where the upstream is not over TLS. Connections are kept as HttpClient has it.
/// 2xx: delivered; 408, 425, 429 and 5xx, or no answer within `timeout`: tried again; any other answer: refused for
/// ever. A Retry-After of what is tried again is told. Adds Idempotency-Key (the ticket), Sluice-Attempt and, where it
/// holds, Sluice-May-Be-Duplicate.
[[nodiscard]] std::unique_ptr<Deliverer> make_http_deliverer(boost::asio::io_context& io, Upstream upstream,
                                                             const TrustPtr& trust, std::chrono::nanoseconds timeout);

}  // namespace sluice::queue
