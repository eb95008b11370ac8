//! A clock that says what the caller has set, for like with like: Sluice takes `now` as an argument.

use std::cell::Cell;

use governor::clock::Clock;
use governor::nanos::Nanos;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// Of each thread, without any synchronization: the cheapest that can be shared by threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given;

impl Given {
    #[inline(always)]
    pub fn set(now: u64) {
        NOW.set(now);
    }
}

impl Clock for Given {
    type Instant = Nanos;

    #[inline(always)]
    fn now(&self) -> Nanos {
        Nanos::new(NOW.get())
    }
}
