//! 100 000 keys and 10 000 000, in governor's default store (DashMap, SipHash).

use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};

use crate::given::Given;
use crate::keys::{mix, shuffled, string_keys, write_key, Turn};
use crate::measure::{alone, cpu_now, together, Amount, Outcome};
use crate::Workload;

const START: u64 = 1_767_225_600_000_000_000;
const STEP: u64 = 100;
const KEYS: u64 = 100_000;
const MANY_KEYS: u64 = 10_000_000;

type Keyed<K, C> = RateLimiter<K, DefaultKeyedStateStore<K>, C, NoOpMiddleware<<C as Clock>::Instant>>;

trait Key: Hash + Eq + Clone + Send + Sync {}
impl<K: Hash + Eq + Clone + Send + Sync> Key for K {}

/// Never empty and, once used, not full again for a minute: a key that is full may be forgotten.
fn quota() -> Quota {
    Quota::per_minute(NonZeroU32::MIN).allow_burst(NonZeroU32::new(100_000).unwrap())
}

fn keyed<K: Key, C: Clock>(clock: C) -> Keyed<K, C> {
    RateLimiter::dashmap_with_clock(quota(), clock)
}

/// Made once; a run takes up where the one before left off. Keys come for the first time in another order than ever
/// after: what a limiter keeps of one must not lie beside what it keeps of the next.
struct Table<K: Key, C: Clock> {
    keys: Vec<K>,
    order: Vec<u32>,
    limiters: [Keyed<K, C>; 2],
}

impl<K: Key, C: Clock + Default> Table<K, C> {
    fn new(keys: Vec<K>) -> Self {
        Given::set(START);
        let order = shuffled(keys.len() as u32, 0);
        let table = Table { keys, order, limiters: [keyed(C::default()), keyed(C::default())] };
        for limiter in &table.limiters {
            for first in shuffled(table.keys.len() as u32, 1) {
                assert!(limiter.check_key(&table.keys[first as usize]).is_ok());
            }
        }
        table
    }
}

fn strings() -> &'static Table<String, Given> {
    static TABLE: OnceLock<Table<String, Given>> = OnceLock::new();
    TABLE.get_or_init(|| Table::new(string_keys(KEYS)))
}

fn strings_with_clock() -> &'static Table<String, DefaultClock> {
    static TABLE: OnceLock<Table<String, DefaultClock>> = OnceLock::new();
    TABLE.get_or_init(|| Table::new(string_keys(KEYS)))
}

fn numbers() -> &'static Table<u64, Given> {
    static TABLE: OnceLock<Table<u64, Given>> = OnceLock::new();
    TABLE.get_or_init(|| Table::new((0..KEYS).map(mix).collect()))
}

/// When a run begins. The time goes on from run to run, and no run is longer than a second of it.
fn later() -> u64 {
    static RUNS: AtomicU64 = AtomicU64::new(1);
    START + RUNS.fetch_add(1, Ordering::Relaxed) * 1_000_000_000
}

fn in_turn<K: Key>(amount: &Amount, table: &Table<K, Given>) -> Outcome {
    let mut turn = Turn::new(table.keys.len(), 0);
    let mut now = later();
    alone(amount, || {
        now += STEP;
        Given::set(now);
        table.limiters[0].check_key(&table.keys[turn.next()]).is_ok()
    })
}

fn string_given(amount: &Amount) -> Outcome {
    in_turn(amount, strings())
}

fn number_given(amount: &Amount) -> Outcome {
    in_turn(amount, numbers())
}

/// The key's own bytes have to be fetched from memory, too.
fn string_cold(amount: &Amount) -> Outcome {
    let table = strings();
    let mut turn = Turn::new(table.keys.len(), 0);
    let mut now = later();
    alone(amount, || {
        now += STEP;
        Given::set(now);
        table.limiters[0].check_key(&table.keys[table.order[turn.next()] as usize]).is_ok()
    })
}

fn string_clock(amount: &Amount) -> Outcome {
    let table = strings_with_clock();
    let mut turn = Turn::new(table.keys.len(), 0);
    alone(amount, || table.limiters[0].check_key(&table.keys[turn.next()]).is_ok())
}

/// Two threads; each with a limiter of its own, if `apart`.
fn two<K: Key>(amount: &Amount, table: &Table<K, Given>, apart: bool) -> Outcome {
    let begin = later();
    together(amount, 2, |thread| {
        let limiter = &table.limiters[if apart { thread } else { 0 }];
        let mut turn = Turn::new(table.keys.len(), thread * table.keys.len() / 2);
        let mut now = begin;
        move || {
            now += STEP;
            Given::set(now);
            limiter.check_key(&table.keys[turn.next()]).is_ok()
        }
    })
}

fn string_two(amount: &Amount) -> Outcome {
    two(amount, strings(), false)
}

fn string_two_apart(amount: &Amount) -> Outcome {
    two(amount, strings(), true)
}

fn number_two(amount: &Amount) -> Outcome {
    two(amount, numbers(), false)
}

/// Made for the moment of the run only: it takes a gigabyte.
fn string_many(amount: &Amount) -> Outcome {
    Given::set(START);
    let limiter = keyed::<String, Given>(Given);
    let mut key = String::new();
    for i in 0..MANY_KEYS {
        write_key(i, &mut key);
        assert!(limiter.check_key(&key).is_ok());
    }
    let mut n = 0;
    alone(amount, || {
        n += 1;
        Given::set(START + n * STEP);
        write_key(mix(n) % MANY_KEYS, &mut key);
        limiter.check_key(&key).is_ok()
    })
}

/// What string_many costs without the limiter.
fn string_many_keys(amount: &Amount) -> Outcome {
    let mut key = String::new();
    let mut n = 0;
    alone(amount, || {
        n += 1;
        write_key(mix(n) % MANY_KEYS, &mut key);
        std::hint::black_box(&key).len() > 1
    })
}

/// Bytes of memory that the process really has.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// A keyed limiter that grows to `keys` keys: the worst call and the memory on the way. Prints one JSON object.
pub fn grow(keys: u64) {
    let before = resident();
    Given::set(START);
    let limiter = keyed::<String, Given>(Given);
    let mut key = String::new();
    let mut worst = 0.0f64;
    let mut worst_at = 0;
    let mut most_bytes = 0.0f64;
    let mut calls_above_1ms = 0;
    for i in 0..keys {
        write_key(i, &mut key);
        let begin = cpu_now();
        assert!(limiter.check_key(&key).is_ok());
        let took = cpu_now() - begin;
        calls_above_1ms += u64::from(took > 1e6);
        if took > worst {
            worst = took;
            worst_at = i + 1;
        }
        if (i + 1) % (keys / 100) == 0 && i >= keys / 10 {
            most_bytes = most_bytes.max((resident() - before) as f64 / (i + 1) as f64);
        }
    }
    let bytes = (resident() - before) as f64 / keys as f64;
    println!(
        r#"{{"keys": {keys}, "bytes_a_key": {bytes:.1}, "most_bytes_a_key": {most_bytes:.1}, "worst_us": {:.1}, "worst_at": {worst_at}, "calls_above_1ms": {calls_above_1ms}}}"#,
        worst / 1e3
    );
}

pub fn workloads() -> Vec<Workload> {
    vec![
        ("string.given", string_given),
        ("string.cold", string_cold),
        ("string.clock", string_clock),
        ("string.2", string_two),
        ("string.2.apart", string_two_apart),
        ("number.given", number_given),
        ("number.2", number_two),
        ("string.10m", string_many),
        ("string.10m.keys", string_many_keys),
    ]
}
