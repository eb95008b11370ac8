// From a limiter's answer to what an HTTP client is told.
#pragma once

#include <chrono>
#include <string_view>

#include "limiter/call.h"
#include "sluice/http_answer.h"
#include "sluice/http_request.h"

namespace sluice::adapter {

/// As `LimiterAnswer` shows it; replaces `out`, whose texts keep their capacity.
void show_answer(const limiter::Answer& answer, LimiterAnswer& out);

/// Replaces `out`. `wants_problem` is called for denials only: is a problem document wanted?
template <typename WantsProblem>
void render_answer(const limiter::Answer& answer, const HttpAnswerOptions& options, WantsProblem wants_problem,
                   HttpAnswer& out);

/// Replaces all but `out.answer` by a refusal that no limit made: `{"error":code,"message":message}`.
void render_refusal(HttpAnswer::Reason reason, unsigned status, std::string_view code, std::string_view message,
                    HttpAnswer& out);

/// The same of a whole call, for who can be held back for at most `longest`.
template <typename WantsProblem>
void render_call(limiter::Call& call, const HttpAnswerOptions& options, std::chrono::nanoseconds longest,
                 WantsProblem wants_problem, HttpAnswer& out);

/// Does the client want a problem document?
[[nodiscard]] bool wants_problem(const HttpRequest& request);

/// The parts of render_answer that don't depend on how Accept is read.
void render_head(const limiter::Answer& answer, const HttpAnswerOptions& options, HttpAnswer& out);
void render_denial(const limiter::Answer& answer, const HttpAnswerOptions& options, bool wants_problem,
                   HttpAnswer& out);

template <typename WantsProblem>
void render_answer(const limiter::Answer& answer, const HttpAnswerOptions& options, WantsProblem wants_problem,
                   HttpAnswer& out) {
  render_head(answer, options, out);
  if (!out.allowed) render_denial(answer, options, answer.has_figures && wants_problem(), out);
}

template <typename WantsProblem>
void render_call(limiter::Call& call, const HttpAnswerOptions& options, std::chrono::nanoseconds longest,
                 WantsProblem wants_problem, HttpAnswer& out) {
  std::chrono::nanoseconds hold = call.hold();
  if (hold.count() != 0) {
    if (hold <= longest) {
      call.end_hold();
    } else {
      call.refuse_hold();
      hold = std::chrono::nanoseconds(0);
    }
  }
  render_answer(call.answer(), options, wants_problem, out);
  out.hold = hold;
}

}  // namespace sluice::adapter
