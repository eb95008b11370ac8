// From a limiter's answer to what an HTTP client is told.
#pragma once

#include <string_view>

#include "limiter/call.h"
#include "sluice/http_answer.h"

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

}  // namespace sluice::adapter
