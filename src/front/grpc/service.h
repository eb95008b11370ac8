// What the gRPC connections of one io thread share.
#pragma once

#include <memory>
#include <string>

#include "front/grpc/frame_room.h"
#include "front/grpc/grpc_options.h"
#include "front/grpc/limiter_codec.h"
#include "front/grpc/rls_codec.h"
#include "front/grpc/stream.h"
#include "front/headers.h"
#include "metrics/metrics.h"
#include "policy/snapshot_holder.h"
#include "store/store.h"

namespace sluice::front::grpc {

/// The referred-to objects must outlive every connection. Not thread-safe.
struct Service {
  Service(policy::SnapshotReader& the_policy, const std::shared_ptr<store::Store>& the_store,
          metrics::Shard& the_metrics, const bool& is_draining)
      : policy(the_policy), store(the_store), metrics(the_metrics), draining(is_draining), streams(the_metrics) {}

  policy::SnapshotReader& policy;
  const std::shared_ptr<store::Store>& store;
  metrics::Shard& metrics;
  const bool& draining;

  StreamPool streams;
  FrameRoom frame_room;
  RequestDecoder decoder;
  LimiterDecoder limiter_decoder;
  HeaderList headers;
  std::string text;  ///< scratch space for a status message
};

}  // namespace sluice::front::grpc
