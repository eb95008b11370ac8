// Owners of what OpenSSL allocates.
#pragma once

#include <memory>

namespace sluice::identity {

/// Deletes by a function of OpenSSL's.
template <auto kFree>
struct FreeBy {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

/// `OpenSslOwner<BIGNUM, BN_free>`
template <typename T, auto kFree>
using OpenSslOwner = std::unique_ptr<T, FreeBy<kFree>>;

}  // namespace sluice::identity
