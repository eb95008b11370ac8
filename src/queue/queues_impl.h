// What the parts of the library's queues share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "adapter/owned_request.h"
#include "config/queue_settings.h"
#include "limiter/backend.h"
#include "limiter/call.h"
#include "queue/desk.h"
#include "queue/drainer.h"
#include "queue/message.h"
#include "sluice/queues.h"

namespace sluice {

namespace queue {

/// Who hears what becomes of a request: over() and then admitted(), or decided() alone. On any thread.
class AdmitEnd {
 public:
  virtual ~AdmitEnd() = default;
  /// The limits let it go on or deny it, and no queue is asked. Null: the question was ended.
  virtual void decided(limiter::Call* call) = 0;
  /// It is over a limit whose queue is asked now.
  virtual void over(const limiter::Answer& answer) = 0;
  virtual void admitted(Admission admission) = 0;

 protected:
  AdmitEnd() = default;
  AdmitEnd(const AdmitEnd&) = default;
  AdmitEnd& operator=(const AdmitEnd&) = default;
};

class QueuesAccess {
 public:
  using Impl = Queues::Impl;
  [[nodiscard]] static Impl& impl(Queues& queues) { return *queues.impl_; }
};

}  // namespace queue

class Queues::Impl : public std::enable_shared_from_this<Queues::Impl> {
 public:
  Impl(Limiter& limiter, const QueuesOptions& options);
  ~Impl() { desk_->stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// `message`: the request itself; its descriptors, cost and group are set here.
  Limiter::Pending start(std::shared_ptr<const adapter::OwnedRequest> asked, queue::Message message,
                         std::shared_ptr<queue::AdmitEnd> end);

  [[nodiscard]] limiter::Backend& backend() const { return backend_; }
  [[nodiscard]] queue::Desk& desk() const { return *desk_; }
  /// Of the queue, as its broker was made; null: there is none of that name.
  [[nodiscard]] const config::QueueSettings* settings(const std::string& name) const;

 private:
  class Intake;

  limiter::Backend& backend_;
  std::vector<config::QueueSettings> settings_;
  std::unique_ptr<queue::Desk> desk_;
};

}  // namespace sluice
