#include "identity/jwt_verifier.h"

namespace sluice::identity {

void JwtVerifier::follow_files(Time now) {
  std::uint64_t generation = 0;
  for (const auto& file : source_->files) {
    file->look(now.steady);
    generation += file->generation();  // each only grows
  }
  if (generation == generation_) return;
  generation_ = generation;
  keys_.clear();
  views_.clear();
  for (const auto& file : source_->files) {
    keys_.push_back(file->get());
    views_.push_back(keys_.back().get());
  }
}

const Jwt& JwtVerifier::verify(std::string_view token, Time now) {
  follow_files(now);
  if (const Jwt* const known = cache_.find(token, generation_, now.utc)) return *known;
  verified_ = verify_jwt(token, source_->rules, views_, now.utc);
  if (verified_.fault == JwtFault::none) cache_.put(token, generation_, verified_);
  return verified_;
}

}  // namespace sluice::identity
