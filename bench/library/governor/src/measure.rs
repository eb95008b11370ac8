//! How a decision is timed, alone and by several threads. bench/library/measure.h is the same in C++.

use std::sync::Barrier;

fn nanoseconds_of(clock: libc::clockid_t) -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// CPU time of this thread: the machine may have other work.
pub fn cpu_now() -> f64 {
    nanoseconds_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

pub fn wall_now() -> f64 {
    nanoseconds_of(libc::CLOCK_MONOTONIC)
}

/// How long to go on: for a time, or for a number of calls (each thread).
#[derive(Clone, Copy, Default)]
pub struct Amount {
    pub nanoseconds: f64,
    pub calls: u64,
}

impl Amount {
    fn enough(&self, elapsed: f64, done: u64) -> bool {
        if self.calls != 0 {
            done >= self.calls
        } else {
            elapsed >= self.nanoseconds
        }
    }

    /// To have everything in the caches as it is in the middle of a run. Nothing for a number of calls: who counts
    /// instructions takes the difference of two numbers.
    fn warm_up(&self) -> Amount {
        Amount { nanoseconds: self.nanoseconds / 8.0, calls: 0 }
    }
}

#[derive(Clone, Copy, Default)]
pub struct Outcome {
    pub calls: u64,
    pub allowed: u64,
    /// A call; of several threads: time that passes between two calls of any.
    pub nanoseconds: f64,
}

const BATCH: u64 = 1_000;

#[inline(always)]
fn batch<F: FnMut() -> bool>(call: &mut F) -> u64 {
    let mut allowed = 0;
    for _ in 0..BATCH {
        allowed += u64::from(call());
    }
    allowed
}

#[inline(always)]
fn timed<F: FnMut() -> bool>(amount: &Amount, clock: fn() -> f64, call: &mut F) -> Outcome {
    let mut begin = clock();
    if amount.calls == 0 {
        while !amount.warm_up().enough(clock() - begin, 0) {
            std::hint::black_box(batch(call));
        }
        begin = clock();
    }
    let mut outcome = Outcome::default();
    let mut elapsed = 0.0;
    while !amount.enough(elapsed, outcome.calls) {
        outcome.allowed += batch(call);
        outcome.calls += BATCH;
        elapsed = clock() - begin;
    }
    outcome.nanoseconds = elapsed / outcome.calls as f64;
    outcome
}

/// `call()` decides once and says if it was allowed.
#[inline(never)]
pub fn alone<F: FnMut() -> bool>(amount: &Amount, mut call: F) -> Outcome {
    timed(amount, cpu_now, &mut call)
}

/// `make(thread)` gives each thread its `call`. All begin at once and go on for the same time.
pub fn together<M, F>(amount: &Amount, threads: usize, make: M) -> Outcome
where
    M: Fn(usize) -> F + Sync,
    F: FnMut() -> bool,
{
    let start = Barrier::new(threads);
    let results: Vec<Outcome> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                let (make, start) = (&make, &start);
                scope.spawn(move || {
                    let mut call = make(thread);
                    start.wait();
                    timed(amount, wall_now, &mut call)
                })
            })
            .collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let rate: f64 = results.iter().map(|one| 1.0 / one.nanoseconds).sum();
    Outcome {
        calls: results.iter().map(|one| one.calls).sum(),
        allowed: results.iter().map(|one| one.allowed).sum(),
        nanoseconds: 1.0 / rate,
    }
}
