#include "store/failure.h"

namespace sluice::store {

std::string_view to_text(Failure failure) {
  switch (failure) {
    case Failure::none:
      return "no failure";
    case Failure::timeout:
      return "no answer within the time allowed";
    case Failure::unreachable:
      return "no connection to the server";
    case Failure::lost:
      return "the connection was lost before the answer";
    case Failure::circuit_open:
      return "not asked after too many failures";
    case Failure::loading:
      return "the server is still loading its data (LOADING)";
    case Failure::busy:
      return "the server is held by another script (BUSY)";
    case Failure::out_of_memory:
      return "the server is out of memory for writes (OOM)";
    case Failure::read_only:
      return "the server is a read-only replica (READONLY)";
    case Failure::no_permission:
      return "the server's user lacks a permission (NOPERM)";
    case Failure::not_authenticated:
      return "user or password is missing or wrong";
    case Failure::wrong_type:
      return "a key holds a value of another type (WRONGTYPE)";
    case Failure::foreign_value:
      return "a key holds a value that is not a state of its limit";
    case Failure::clock_apart:
      return "the clocks of this machine and of the server are too far apart";
    case Failure::cluster_down:
      return "the cluster refuses all calls while some of its slots have no master (CLUSTERDOWN)";
    case Failure::slot_moving:
      return "the keys' slot is being moved between nodes (TRYAGAIN)";
    case Failure::slot_unserved:
      return "no node of the cluster is known to serve the keys' slot";
    case Failure::wrong_server:
      return "the server is not what the URL says";
    case Failure::bad_answer:
      return "the server's answer is not of the agreed shape";
    case Failure::server_error:
      return "the server reports an error";
    case Failure::unsupported:
      return "this kind of limit cannot be kept in the store";
  }
  return "unknown failure";
}

}  // namespace sluice::store
