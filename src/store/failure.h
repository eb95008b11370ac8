// Why a store could not answer. A failure is never a denial, and a denial never a failure.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::store {

enum class Failure : std::uint8_t {
  none,
  timeout,            ///< no answer within the deadline; may have been charged
  unreachable,        ///< no connection; not charged
  lost,               ///< the connection broke with the answer outstanding; may have been charged
  circuit_open,       ///< too many failures before: not asked; not charged
  loading,            ///< the server is reading its data set (LOADING)
  busy,               ///< the server is held by another script (BUSY)
  out_of_memory,      ///< the server refuses writes (OOM)
  read_only,          ///< the server is a replica now (READONLY)
  no_permission,      ///< the user may not do what is needed (NOPERM)
  not_authenticated,  ///< NOAUTH, or user and password were refused
  wrong_type,         ///< a key holds another type (WRONGTYPE)
  foreign_value,      ///< a key holds a string that is not this limit's state
  clock_apart,        ///< the server's clock lies outside the calendar windows around the caller's
  cluster_down,       ///< a cluster's nodes refuse every call, as some slots have no master (CLUSTERDOWN); not charged
  slot_moving,        ///< a cluster's slot was on its way all the time (TRYAGAIN); not charged
  slot_unserved,      ///< no node of the cluster is known to have the keys' slot; not charged
  wrong_server,       ///< not what the URL says: a replica, a sentinel, one node of a cluster
  bad_answer,         ///< the answer is not of the agreed shape
  server_error,       ///< any other error that the server reports
  unsupported         ///< the store cannot hold such a limit
};

/// A sentence without a full stop, for logs.
[[nodiscard]] std::string_view to_text(Failure failure);

/// May what was asked of the store have been done all the same?
[[nodiscard]] constexpr bool may_be_done(Failure failure) {
  return failure == Failure::timeout || failure == Failure::lost || failure == Failure::bad_answer;
}

/// Is it the one key or limit that is at fault, and not the store as a whole?
[[nodiscard]] constexpr bool is_of_one_key(Failure failure) {
  return failure == Failure::wrong_type || failure == Failure::foreign_value || failure == Failure::clock_apart ||
         failure == Failure::unsupported;
}

}  // namespace sluice::store
