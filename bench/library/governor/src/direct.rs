//! One limiter, one key.

use std::num::NonZeroU32;

use governor::middleware::StateInformationMiddleware;
use governor::{Quota, RateLimiter};

use crate::given::Given;
use crate::measure::{alone, together, Amount, Outcome};
use crate::Workload;

const START: u64 = 1_767_225_600_000_000_000;
const STEP: u64 = 1_000;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap()
}

/// Never empty, whoever calls how often.
fn plenty() -> Quota {
    Quota::per_second(number(1_000_000_000)).allow_burst(number(4_000_000_000))
}

fn next_to_nothing() -> Quota {
    Quota::per_hour(number(1))
}

fn with_clock(amount: &Amount) -> Outcome {
    let limiter = RateLimiter::direct(plenty());
    alone(amount, || limiter.check().is_ok())
}

fn with_clock_denied(amount: &Amount) -> Outcome {
    let limiter = RateLimiter::direct(next_to_nothing());
    let _ = limiter.check();
    alone(amount, || limiter.check().is_ok())
}

fn given_now(amount: &Amount) -> Outcome {
    let mut now = START;
    Given::set(now);
    let limiter = RateLimiter::direct_with_clock(plenty(), Given);
    alone(amount, || {
        now += STEP;
        Given::set(now);
        limiter.check().is_ok()
    })
}

fn given_now_denied(amount: &Amount) -> Outcome {
    let mut now = START;
    Given::set(now);
    let limiter = RateLimiter::direct_with_clock(next_to_nothing(), Given);
    let _ = limiter.check();
    alone(amount, || {
        now += 1;
        Given::set(now);
        limiter.check().is_ok()
    })
}

/// The caller looks at what remains, too.
fn given_now_figures(amount: &Amount) -> Outcome {
    let mut now = START;
    Given::set(now);
    let quota = Quota::per_second(number(10)).allow_burst(number(30));
    let limiter = RateLimiter::direct_with_clock(quota, Given).with_middleware::<StateInformationMiddleware>();
    alone(amount, || {
        now += 100_000_000;
        Given::set(now);
        limiter.check().is_ok_and(|state| state.remaining_burst_capacity() != 30)
    })
}

fn threads_with_clock<const THREADS: usize>(amount: &Amount) -> Outcome {
    let limiter = RateLimiter::direct(plenty());
    together(amount, THREADS, |_| || limiter.check().is_ok())
}

/// All at one instant: else the fastest thread's time would be the only one that counts.
fn threads_given_now<const THREADS: usize>(amount: &Amount) -> Outcome {
    Given::set(START);
    let limiter = RateLimiter::direct_with_clock(plenty(), Given);
    together(amount, THREADS, |_| {
        || {
            Given::set(START);
            limiter.check().is_ok()
        }
    })
}

pub fn workloads() -> Vec<Workload> {
    vec![
        ("direct.clock", with_clock),
        ("direct.clock.denied", with_clock_denied),
        ("direct.given", given_now),
        ("direct.given.denied", given_now_denied),
        ("direct.given.figures", given_now_figures),
        ("direct.clock.2", threads_with_clock::<2>),
        ("direct.clock.8", threads_with_clock::<8>),
        ("direct.given.2", threads_given_now::<2>),
        ("direct.given.8", threads_given_now::<8>),
    ]
}
