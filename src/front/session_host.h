// What a protocol's connection, which has no socket, wants from the session that has one.
#pragma once

#include <functional>

namespace sluice::front {

class SessionHost {
 public:
  /// A store has answered what was waiting: output(), wants_input() and finished() may have changed. May be called
  /// often, and on the stack of whatever answers.
  virtual void resumed() = 0;
  /// What brings work of other threads to the connection's own; it may outlive the connection.
  using Poster = std::function<void(std::function<void()> work)>;
  [[nodiscard]] virtual Poster poster() {
    return [](const std::function<void()>& work) { work(); };
  }

 protected:
  ~SessionHost() = default;
};

}  // namespace sluice::front
