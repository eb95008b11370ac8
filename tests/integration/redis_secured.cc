#include "tests/integration/redis_secured.h"

#include "tests/integration/support/documented_acl.h"

namespace sluice::testing {

SetOptions SecuredRedis::servers() const {
  write_password("secret");
  SetOptions set;
  set.options = {"--tls-cert-file",    certificates_.cert(Certificates::kServer),
                 "--tls-key-file",     certificates_.key(Certificates::kServer),
                 "--tls-ca-cert-file", certificates_.ca(),
                 "--tls-auth-clients", "yes"};
  set.config = documented_user(title_);
  set.sentinel_config = documented_user(kSentinels);
  set.setup.over_tls = true;
  set.setup.password = "the-tests-own";
  return set;
}

RedisServer SecuredRedis::server() const {
  const SetOptions set = servers();
  return RedisServer(set.options, set.config, set.setup);
}

store::redis::Access SecuredRedis::access() const {
  store::redis::Access access;
  access.user = "sluice";
  access.password_file = (folder_.path() / "password").string();
  access.tls.ca = certificates_.ca();
  access.tls.cert = certificates_.cert(Certificates::kClient);
  access.tls.key = certificates_.key(Certificates::kClient);
  access.tls.server_name = Certificates::kServerName;
  if (title_ == kBehindSentinel) {
    access.sentinel_user = "sluice";
    access.sentinel_password = "another";
  }
  return access;
}

}  // namespace sluice::testing
