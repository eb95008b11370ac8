// grpc.reflection: tells clients such as grpcurl which services there are, by their descriptors.
#pragma once

#include <string>
#include <string_view>

namespace sluice::front::grpc {

/// Is it the path of the method, of v1 or v1alpha, which have the same messages?
[[nodiscard]] bool is_reflection(std::string_view path);

/// Appends the ServerReflectionResponse to a ServerReflectionRequest. False: that is no valid protobuf. Thread-safe.
[[nodiscard]] bool reflect(std::string_view request, std::string& out);

}  // namespace sluice::front::grpc
