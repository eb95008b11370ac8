// Limiter::check and Limiter::apply as Boost.Asio operations.
#pragma once

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <utility>

#include "sluice/limiter.h"

namespace sluice {

namespace internal {

/// Calls start(done), which returns a Limiter::Pending; completes with the Answer that `done` is called with.
template <typename Answer, typename Executor, typename Start, typename CompletionToken>
auto async_ask(const Executor& executor, Start start, CompletionToken&& token) {
  return boost::asio::async_initiate<CompletionToken, void(Answer)>(
      [executor](auto handler, Start begin) {
        using Handler = decltype(handler);
        const auto target = boost::asio::get_associated_executor(handler, executor);
        const auto slot = boost::asio::get_associated_cancellation_slot(handler);
        // Held by the answer; the guard keeps the context of the handler running until then.
        struct Held {
          Handler handler;
          boost::asio::executor_work_guard<std::decay_t<decltype(target)>> work;
        };
        auto held = std::make_shared<Held>(
            Held{std::move(handler), boost::asio::executor_work_guard<std::decay_t<decltype(target)>>(target)});
        const Limiter::Pending pending = begin([held, slot, target](Answer answer) {
          boost::asio::post(target, [held, slot, answer = std::move(answer)]() mutable {
            if (slot.is_connected()) {
              auto connected = slot;
              connected.clear();
            }
            held->work.reset();
            auto call = std::move(held->handler);
            held.reset();
            std::move(call)(std::move(answer));
          });
        });
        if (slot.is_connected()) {
          auto connected = slot;
          connected.assign([pending](boost::asio::cancellation_type type) {
            if (type != boost::asio::cancellation_type::none) pending.cancel();
          });
        }
      },
      token, std::move(start));
}

}  // namespace internal

/// Asks `limiter`; completes with a LimiterAnswer on the token's executor, or else on `executor`, never within this
/// call. Any completion token will do: a callback, use_future, use_awaitable, deferred. Cancellation (of any type)
/// withdraws the check, which completes with Problem::stopped; a charge that was not sent yet is not made. The limiter
/// must live until then.
///
///     sluice::async_check(limiter, io.get_executor(), {.domain = "shop", .descriptors = {{{"user", "42"}}}},
///                         [](const sluice::LimiterAnswer& answer) { … });
template <typename Executor, typename CompletionToken>
auto async_check(Limiter& limiter, const Executor& executor, LimiterRequest request, CompletionToken&& token) {
  return internal::async_ask<LimiterAnswer>(
      executor,
      [&limiter, request = std::move(request)](auto done) mutable {
        return limiter.start(std::move(request), Limiter::Done(std::move(done)));
      },
      std::forward<CompletionToken>(token));
}

/// Does `verb` to the counters of `request`; completes with a LimiterVerbAnswer, as async_check does.
///
///     sluice::async_apply(limiter, io.get_executor(), request, sluice::LimiterVerb::refund(), boost::asio::detached);
template <typename Executor, typename CompletionToken>
auto async_apply(Limiter& limiter, const Executor& executor, LimiterRequest request, const LimiterVerb& verb,
                 CompletionToken&& token) {
  return internal::async_ask<LimiterVerbAnswer>(
      executor,
      [&limiter, verb, request = std::move(request)](auto done) mutable {
        return limiter.start(std::move(request), verb, Limiter::VerbDone(std::move(done)));
      },
      std::forward<CompletionToken>(token));
}

}  // namespace sluice
