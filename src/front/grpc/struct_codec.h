// google.protobuf.Struct on the wire.
#pragma once

#include <string>
#include <string_view>

namespace sluice::front::grpc {

/// A JSON object as a Struct; what is no JSON object gives an empty one. At most 32 levels deep. Allocates.
[[nodiscard]] std::string encode_struct(std::string_view json);

}  // namespace sluice::front::grpc
