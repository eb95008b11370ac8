// Loaded into a server by LD_PRELOAD: every connection that it accepts sends at once (TCP_NODELAY), whether it says so
// or not. For servers that answer each command of a pipeline by a write of its own and would wait 40 ms between two.
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

extern "C" [[gnu::visibility("default")]] int accept4(int listener, sockaddr* peer, socklen_t* size, int flags) {
  using Accept = int (*)(int, sockaddr*, socklen_t*, int);
  static const auto original = reinterpret_cast<Accept>(::dlsym(RTLD_NEXT, "accept4"));
  const int connection = original(listener, peer, size, flags);
  const int on = 1;
  if (connection >= 0) ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return connection;
}
