// The part of HttpConnection that lets requests wait: /v1/admit, /v1/tickets, /v1/queues.
#include <chrono>
#include <utility>

#include "front/http/admit_codec.h"
#include "front/http/content_type.h"
#include "front/http/error_json.h"
#include "front/http/http_connection.h"
#include "queue/admission_json.h"
#include "queue/overflow_of.h"

namespace sluice::http {
void HttpConnection::answer_admit(Time now) {
  const limiter::Answer& answer = call_.answer();
  const policy::Rule* rule = queue::overflow_of(answer);
  if (rule == nullptr || environment_.context.desk == nullptr) {
    answer_check(now);
    return;
  }
  const std::shared_ptr<QueueWait> wait = begin_wait();
  queue::Message message = std::move(wait->message);
  message.group = queue::group_of(message, answer.decision.which);
  environment_.context.desk->admit(*rule, std::move(message),
                                   [post = host_.poster(), wait](queue::Admission admission) {
                                     post([wait, admission = std::move(admission)] {
                                       if (wait->connection != nullptr) wait->connection->admitted(admission);
                                     });
                                   });
}

void HttpConnection::admitted(const queue::Admission& admission) {
  resume_with([&](Time now) {
    std::string& body = environment_.scratch.body;
    front::HeaderList& headers = environment_.scratch.headers;
    body.clear();
    headers.clear();
    if (admission.stored) {
      queue::encode_admission(admission, body);
      headers.add("Location") = "/v1/tickets/" + admission.ticket;
      reply({.status = 202, .content_type = kJson, .allow = {}, .no_store = false}, now, headers.fields());
      return;
    }
    encode_error(admission.code, admission.message, body);
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(admission.retry_after).count();
    headers.add("Retry-After") = std::to_string(seconds);
    reply({.status = environment_.context.options.deny_status, .content_type = kJson, .allow = {}, .no_store = false},
          now, headers.fields());
  });
}

void HttpConnection::serve_ticket(Time now) {
  const bool is_delete = reader_.head().method == Method::del;
  if (!is_delete && reader_.head().method != Method::get && reader_.head().method != Method::head) {
    reply_error(405, "method_not_allowed", "this path takes GET and DELETE", now, "GET, HEAD, DELETE");
    return;
  }
  std::string id = reader_.head().path.substr(kTicketPath.size());
  if (!queue::is_ticket(id) || environment_.context.desk == nullptr) {
    reply_error(404, "no_such_ticket", "there is no such ticket", now);
    return;
  }
  const std::shared_ptr<QueueWait> wait = begin_wait();
  wait->ticket = id;
  const auto post = host_.poster();
  if (is_delete) {
    environment_.context.desk->cancel(id, [post, wait](bool reached, std::optional<queue::TicketState> before) {
      post([wait, reached, before] {
        if (wait->connection != nullptr) wait->connection->ticket_cancelled(reached, before);
      });
    });
    return;
  }
  environment_.context.desk->ticket(id, [post, wait](bool reached, std::optional<queue::Ticket> ticket) {
    post([wait, reached, ticket = std::move(ticket)] {
      if (wait->connection != nullptr) wait->connection->ticket_found(reached, ticket);
    });
  });
}

void HttpConnection::ticket_found(bool reached, const std::optional<queue::Ticket>& ticket) {
  const std::string id = wait_->ticket;
  resume_with([&](Time now) {
    if (!reached) {
      reply_error(503, "tickets_down", "the store of tickets cannot be reached", now);
    } else if (!ticket) {
      reply_error(404, "no_such_ticket", "there is no such ticket, or not any longer", now);
    } else {
      environment_.scratch.body.clear();
      encode_ticket(id, *ticket, now.utc / 1'000, environment_.scratch.body);
      reply({.status = 200, .content_type = kJson, .allow = {}, .no_store = true}, now);
    }
  });
}

void HttpConnection::ticket_cancelled(bool reached, std::optional<queue::TicketState> before) {
  using queue::TicketState;
  resume_with([&](Time now) {
    if (!reached) {
      reply_error(503, "tickets_down", "the store of tickets cannot be reached", now);
    } else if (!before) {
      reply_error(404, "no_such_ticket", "there is no such ticket, or not any longer", now);
    } else if (*before == TicketState::queued || *before == TicketState::cancelled) {
      environment_.scratch.body = R"({"state":"cancelled"})";
      reply({.status = 200, .content_type = kJson, .allow = {}, .no_store = true}, now);
    } else {
      reply_error(409, "too_late", "the request is " + std::string(queue::to_text(*before)) + " already", now);
    }
  });
}

void HttpConnection::serve_queues(Time now) {
  std::string& body = environment_.scratch.body;
  body.clear();
  std::vector<queue::QueueFigures> figures;
  if (environment_.context.desk != nullptr) figures = environment_.context.desk->figures();
  encode_queues(figures, body);
  reply({.status = 200, .content_type = kJson, .allow = {}, .no_store = true}, now);
}

// ---- waiting for the desk

std::shared_ptr<HttpConnection::QueueWait> HttpConnection::begin_wait() {
  if (wait_ == nullptr) wait_ = std::make_shared<QueueWait>();
  wait_->connection = this;
  state_ = State::deciding;
  return wait_;
}

void HttpConnection::end_wait() {
  if (wait_ != nullptr) wait_->connection = nullptr;
  wait_.reset();
}

template <typename Answer>
void HttpConnection::resume_with(Answer answer) {
  const auto held = wait_;  // until its own caller has returned
  end_wait();
  resume(answer);
}

}  // namespace sluice::http
