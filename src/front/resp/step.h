// A command on its way, whose reply stands in line behind those of earlier ones.
#pragma once

#include <string>

#include "front/resp/reply_writer.h"

namespace sluice::resp {

class Step {
 public:
  /// Is told when a step that was pending is done; never within the call that started it.
  class Owner {
   public:
    virtual void step_done() = 0;

   protected:
    ~Owner() = default;
  };

  Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  virtual ~Step() = default;
  /// Precondition: is_done.
  virtual void write(ReplyWriter& reply) const = 0;

  bool is_done = false;
  int protocol = 2;  ///< that the reply is to be in
};

}  // namespace sluice::resp
