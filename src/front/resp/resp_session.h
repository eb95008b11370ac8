// A RESP connection over a socket.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "front/resp/resp_options.h"
#include "server/worker.h"

namespace sluice::resp {

/// Serves an accepted socket until either side ends it. On the worker's thread; `options` must outlive the worker.
void start_resp_session(server::Worker& worker, boost::asio::ip::tcp::socket socket, const RespOptions& options);

}  // namespace sluice::resp
