//! How a decision is timed, alone and by several threads. bench/library/measure.h is the same in C++.

use std::sync::atomic::{AtomicU64, Ordering};
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
    /// A call; of several threads: from one of them to the next of any, when as many run as can.
    pub nanoseconds: f64,
}

const BATCH: u64 = 1_000;
const LEAST: u64 = 100;

#[inline(always)]
fn batch<F: FnMut() -> bool>(call: &mut F) -> u64 {
    let mut allowed = 0;
    for _ in 0..BATCH {
        allowed += u64::from(call());
    }
    allowed
}

/// `call()` decides once and says if it was allowed.
#[inline(never)]
pub fn alone<F: FnMut() -> bool>(amount: &Amount, mut call: F) -> Outcome {
    if amount.calls == 0 {
        let begin = cpu_now();
        while !amount.warm_up().enough(cpu_now() - begin, 0) {
            std::hint::black_box(batch(&mut call));
        }
    }
    let mut outcome = Outcome::default();
    let begin = cpu_now();
    let mut elapsed = 0.0;
    while !amount.enough(elapsed, outcome.calls) {
        outcome.allowed += batch(&mut call);
        outcome.calls += BATCH;
        elapsed = cpu_now() - begin;
    }
    outcome.nanoseconds = elapsed / outcome.calls as f64;
    outcome
}

fn cores() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

/// The scheduler may else leave two threads on one processor while the other does something else.
fn pin(thread: usize) {
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(thread % cores(), &mut set);
        libc::pthread_setaffinity_np(libc::pthread_self(), std::mem::size_of_val(&set), &set);
    }
}

#[repr(align(128))]
#[derive(Default)]
struct Batches(AtomicU64);

/// `make(thread)` gives each thread its `call`. All begin at once and go on for the same time. On a machine with few
/// processors and other work, threads often don't run at the same time, and then share nothing: a batch counts only if
/// another thread has ended one meanwhile, and this one had its processor all the time. What it took is divided by the
/// number of threads that can run at once. Goes on, up to twenty times as long, until enough batches count.
pub fn together<M, F>(amount: &Amount, threads: usize, make: M) -> Outcome
where
    M: Fn(usize) -> F + Sync,
    F: FnMut() -> bool,
{
    let start = Barrier::new(threads);
    let batches: Vec<Batches> = (0..threads).map(|_| Batches::default()).collect();
    let counted = AtomicU64::new(0);
    let work = |own: usize| {
        pin(own);
        let mut call = make(own);
        let others = || -> u64 {
            (0..threads).filter(|other| *other != own).map(|other| batches[other].0.load(Ordering::Relaxed)).sum()
        };
        let mut outcome = Outcome::default();
        let mut took = 0.0;
        start.wait();
        let begin = wall_now();
        let mut elapsed = 0.0;
        while !amount.enough(elapsed, outcome.calls)
            || (counted.load(Ordering::Relaxed) < LEAST && elapsed < 20.0 * amount.nanoseconds)
        {
            let before = others();
            let wall = wall_now();
            let cpu = cpu_now();
            outcome.allowed += batch(&mut call);
            let ran = cpu_now() - cpu;
            elapsed = wall_now() - begin;
            outcome.calls += BATCH;
            batches[own].0.fetch_add(1, Ordering::Relaxed);
            let uninterrupted = begin + elapsed - wall < 1.2 * ran + 1_000.0;
            if uninterrupted && others() != before && elapsed >= amount.warm_up().nanoseconds {
                counted.fetch_add(1, Ordering::Relaxed);
                took += ran;
            }
        }
        (outcome, took)
    };
    let results: Vec<(Outcome, f64)> = std::thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = (0..threads).map(|own| scope.spawn(move || work(own))).collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let took: f64 = results.iter().map(|(_, took)| took).sum();
    Outcome {
        calls: results.iter().map(|(one, _)| one.calls).sum(),
        allowed: results.iter().map(|(one, _)| one.allowed).sum(),
        nanoseconds: took / (counted.into_inner() * BATCH * threads.min(cores()) as u64) as f64,
    }
}
