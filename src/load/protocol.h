// A client's end of a connection to a daemon: requests to bytes, bytes to outcomes. No socket, no clock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "load/checker.h"
#include "load/traffic.h"

namespace sluice::load {

/// What the answer to one request says.
struct Outcome {
  Answered how = Answered::failed;
  bool names_limit = false;  ///< some limit took part, as far as the answer tells
  std::string error;         ///< how == failed: why
};

/// Stands for a request while it has no answer.
using Ticket = std::uint32_t;

class Protocol {
 public:
  class Owner {
   public:
    virtual void answered(Ticket ticket, const Outcome& outcome) = 0;

   protected:
    ~Owner() = default;
  };

  virtual ~Protocol() = default;
  /// A connection is there: forgets all of the last one. Requests without an answer are the caller's to fail.
  virtual void open() = 0;
  /// Appends a request to output().
  virtual void ask(Ticket ticket, std::string_view domain, const Descriptors& descriptors, std::uint64_t cost) = 0;
  /// Calls Owner::answered for each answer that is complete. False: the connection cannot be used any more, and fault()
  /// says why.
  [[nodiscard]] virtual bool feed(std::string_view bytes) = 0;
  /// What is to be written; the caller takes it away.
  [[nodiscard]] virtual std::string& output() = 0;
  [[nodiscard]] const std::string& fault() const { return fault_; }

 protected:
  std::string fault_;
};

}  // namespace sluice::load
