// C11 threads as POSIX threads, for the thread sanitizer alone: librdkafka uses the former, which the sanitizer does
// not know, so that it fails on their first call, and sees neither their starts nor their locks. In glibc both are the
// same objects.
#include <pthread.h>
#include <threads.h>

#include <cerrno>
#include <cstdint>
#include <memory>

namespace {

struct Start {
  thrd_start_t function;
  void* argument;
};

void* run(void* start) {
  const std::unique_ptr<Start> owned(static_cast<Start*>(start));
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(owned->function(owned->argument)));
}

int result_of(int error) {
  if (error == 0) return thrd_success;
  if (error == EBUSY) return thrd_busy;
  if (error == ETIMEDOUT) return thrd_timedout;
  return error == ENOMEM ? thrd_nomem : thrd_error;
}

pthread_mutex_t* mutex_of(mtx_t* mutex) { return reinterpret_cast<pthread_mutex_t*>(mutex); }
pthread_cond_t* condition_of(cnd_t* condition) { return reinterpret_cast<pthread_cond_t*>(condition); }

}  // namespace

static_assert(sizeof(mtx_t) >= sizeof(pthread_mutex_t) && sizeof(cnd_t) >= sizeof(pthread_cond_t));

extern "C" {

int thrd_create(thrd_t* thread, thrd_start_t function, void* argument) {
  auto start = std::make_unique<Start>(Start{.function = function, .argument = argument});
  const int error = pthread_create(thread, nullptr, run, start.get());
  if (error == 0) (void)start.release();
  return result_of(error);
}

int thrd_join(thrd_t thread, int* result) {
  void* value = nullptr;
  const int error = pthread_join(thread, &value);
  if (result != nullptr) *result = static_cast<int>(reinterpret_cast<std::intptr_t>(value));
  return result_of(error);
}

int mtx_init(mtx_t* mutex, int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  if ((type & mtx_recursive) != 0) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  const int error = pthread_mutex_init(mutex_of(mutex), &attributes);
  pthread_mutexattr_destroy(&attributes);
  return result_of(error);
}
int mtx_lock(mtx_t* mutex) { return result_of(pthread_mutex_lock(mutex_of(mutex))); }
int mtx_trylock(mtx_t* mutex) { return result_of(pthread_mutex_trylock(mutex_of(mutex))); }
int mtx_unlock(mtx_t* mutex) { return result_of(pthread_mutex_unlock(mutex_of(mutex))); }
void mtx_destroy(mtx_t* mutex) { pthread_mutex_destroy(mutex_of(mutex)); }

int cnd_init(cnd_t* condition) { return result_of(pthread_cond_init(condition_of(condition), nullptr)); }
int cnd_signal(cnd_t* condition) { return result_of(pthread_cond_signal(condition_of(condition))); }
int cnd_broadcast(cnd_t* condition) { return result_of(pthread_cond_broadcast(condition_of(condition))); }
int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return result_of(pthread_cond_wait(condition_of(condition), mutex_of(mutex)));
}
int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* end) {
  return result_of(pthread_cond_timedwait(condition_of(condition), mutex_of(mutex), end));
}
void cnd_destroy(cnd_t* condition) { pthread_cond_destroy(condition_of(condition)); }

}  // extern "C"
