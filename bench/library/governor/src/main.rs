//! The workloads of bench/library on the governor crate. Used by bench/run; see bench/library/sluice_bench.cc for how.

mod direct;
mod given;
mod keyed;
mod keys;
mod measure;

use std::io::BufRead;

use measure::{Amount, Outcome};

pub type Workload = (&'static str, fn(&Amount) -> Outcome);

fn run(workloads: &[Workload], name: &str, amount: &str) {
    let Some((_, workload)) = workloads.iter().find(|(known, _)| *known == name) else {
        eprintln!("no such workload: {name}");
        std::process::exit(2);
    };
    let amount = match amount.strip_suffix("ms") {
        Some(ms) => Amount { nanoseconds: ms.parse::<f64>().unwrap() * 1e6, calls: 0 },
        None => Amount { nanoseconds: 0.0, calls: amount.parse().unwrap() },
    };
    let outcome = workload(&amount);
    println!(
        r#"{{"name": "{name}", "ns": {:.4}, "calls": {}, "allowed": {}}}"#,
        outcome.nanoseconds, outcome.calls, outcome.allowed
    );
}

fn main() {
    let workloads = [direct::workloads(), keyed::workloads()].concat();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["list"] => workloads.iter().for_each(|(name, _)| println!("{name}")),
        ["grow", keys] => keyed::grow(keys.parse().unwrap()),
        [] => {
            for line in std::io::stdin().lock().lines() {
                let line = line.unwrap();
                let (name, amount) = line.split_once(' ').unwrap_or((&line, ""));
                run(&workloads, name, amount);
            }
        }
        [name, amount] => run(&workloads, name, amount),
        _ => {
            eprintln!("usage: governor_bench [list | grow KEYS | WORKLOAD CALLS|MSms]");
            std::process::exit(2);
        }
    }
}
