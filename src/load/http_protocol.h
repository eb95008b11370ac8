// POST /v1/check over HTTP/1.1, as a client.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "load/protocol.h"

namespace sluice::load {

/// Appends the body of a request.
void append_check_request(std::string& out, std::string_view domain, const Descriptors& descriptors,
                          std::uint64_t cost);
/// Reads an answer with this status and body.
[[nodiscard]] Outcome read_check_answer(unsigned status, std::string_view body);

/// Requests on a connection that stays open; more than one at a time are pipelined. Not thread-safe.
class HttpProtocol final : public Protocol {
 public:
  /// `owner` must outlive this.
  HttpProtocol(Owner& owner, std::string host);
  ~HttpProtocol() override;

  void open() override;
  void ask(Ticket ticket, std::string_view domain, const Descriptors& descriptors, std::uint64_t cost) override;
  [[nodiscard]] bool feed(std::string_view bytes) override;
  [[nodiscard]] std::string& output() override { return output_; }

 private:
  class Reader;

  Owner& owner_;
  const std::string host_;
  std::deque<Ticket> asked_;
  std::unique_ptr<Reader> reader_;
  std::string unread_;
  std::string body_;
  std::string output_;
};

}  // namespace sluice::load
