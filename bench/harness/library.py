"""The library beside its peer: both programs know the same workloads, and each is told in turn to go on with one."""

import contextlib
import json
import re
import statistics
import subprocess
from dataclasses import asdict, dataclass, field

from harness.callgrind import per_call
from harness.report import Goal, print_table, spread

OURS, PEER = "sluice", "governor"

# Workload and what the tables call it. All of these are known to both programs.
ONE_KEY = {
    "direct.clock": "with its own clock",
    "direct.clock.denied": "with its own clock, denied",
    "direct.given": "given now",
    "direct.given.denied": "given now, denied",
    "direct.given.figures": "given now, remaining read",
    "direct.clock.2": "2 threads on one limiter, own clock",
    "direct.clock.8": "8 threads on one limiter, own clock",
    "direct.given.2": "2 threads on one limiter, given now",
    "direct.given.8": "8 threads on one limiter, given now",
    "shares.clock.2": "2 threads, a share each (governor: one limiter)",
    "shares.clock.8": "8 threads, a share each (governor: one limiter)",
}
KEYED = {
    "string.cold": "100 k strings in random order",
    "string.cold.32": "100 k strings in random order, 32 a call (governor: one)",
    "string.cold.floor": "100 k strings in random order: fetched, and one atomic exchange",
    "string.given": "100 k strings, the key at hand",
    "string.clock": "100 k strings, the key at hand, own clock",
    "string.2": "100 k strings, at hand, 2 threads on one",
    "string.2.apart": "100 k strings, at hand, 2 threads, a copy each",
    "number.given": "100 k 64-bit numbers",
    "number.2": "100 k 64-bit numbers, 2 threads on one",
}
# Two threads on one keyed limiter. Of each: ours on one, on a copy each, and the same of bare memory.
SHARED = {
    "shared.100k": "100 k strings, one a call",
    "shared.100k.32": "100 k strings, 32 a call",
    "shared.1m": "1 M strings, one a call",
    "shared.1m.32": "1 M strings, 32 a call",
    "shared.10m": "10 M strings, one a call",
    "shared.10m.32": "10 M strings, 32 a call",
}
# What the peer does instead, where it has no such call; None: nothing.
INSTEAD = {
    "string.cold.32": "string.cold",
    "string.cold.floor": None,
    "shares.clock.2": "direct.clock.2",
    "shares.clock.8": "direct.clock.8",
}
KEY_BYTES = 21


class Program:
    """A program that is given a workload a line."""

    def __init__(self, path):
        self.path = path
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, workload, milliseconds):
        self.process.stdin.write(f"{workload} {milliseconds}ms\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().lower()
        if not line:
            raise RuntimeError(f"{self.path} ended")
        if "nan" in line:
            raise RuntimeError(f"{workload}: the machine is too busy, the threads never ran at the same time")
        answer = json.loads(line)
        if answer["allowed"] != (0 if workload.endswith(".denied") else answer["calls"]):
            raise RuntimeError(f"{self.path}: not every call was answered as it should be: {answer}")
        return answer["ns"]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.stdin.close()
        self.process.wait()


@dataclass
class Pair:
    """One workload: ns a decision of both, round by round."""

    ours: list = field(default_factory=list)
    peer: list = field(default_factory=list)

    @property
    def ratios(self):
        return [a / b for a, b in zip(self.ours, self.peer)]


def compare(ours, peer, workloads, rounds, milliseconds, progress):
    """Every workload `rounds` times, by both programs in turn. Without a peer (None) ours alone."""
    pairs = {workload: Pair() for workload in workloads}
    for n in range(rounds + 1):
        for workload, pair in pairs.items():
            turn = [(ours, pair.ours)] + ([(peer, pair.peer)] if peer else [])
            for program, samples in turn if n % 2 else reversed(turn):
                name = INSTEAD.get(workload, workload) if program is peer else workload
                if name is None:
                    continue
                nanoseconds = program.run(name, milliseconds if n else min(milliseconds, 20))
                if n:  # the first round makes the tables
                    samples.append(nanoseconds)
        if n:
            progress(n)
    return pairs


def print_pairs(title, pairs, names):
    print(f"\n### {title}\n")
    rows = []
    for workload, pair in pairs.items():
        row = [names[workload], f"{statistics.median(pair.ours):.1f}", spread(pair.ours, 1)]
        if pair.peer:
            row += [
                f"{statistics.median(pair.peer):.1f}",
                spread(pair.peer, 1),
                f"{statistics.median(pair.ratios):.2f}",
                spread(pair.ratios, 2),
            ]
        else:
            row += [""] * 4
        rows.append(row)
    print_table(
        ["decision", f"{OURS} ns", "lowest–highest", f"{PEER} ns", "lowest–highest", f"{OURS} ÷ it", "lowest–highest"],
        rows,
    )


def throughput(slower, faster):
    """Of times a decision, round by round: how much of the throughput of `faster` the other one reaches."""
    return [b / a for a, b in zip(slower, faster)]


def goals_of(pairs):
    """What is judged of the pairs that were measured."""
    goals = []

    def time(workload, name, at_most):
        if workload in pairs and pairs[workload].peer:
            goals.append(Goal(name, PEER, pairs[workload].ratios, at_most))

    time("direct.clock", "time, own clock", 1.15)
    time("direct.given", "time, given now", 1.25)
    time("direct.given.denied", "time, given now, denied", 1.25)
    for which, name in (
        ("direct.clock", "on one, own clock"),
        ("direct.given", "on one, given now"),
        ("shares.clock", "with a share each"),
    ):
        two, eight = pairs.get(f"{which}.2"), pairs.get(f"{which}.8")
        if two and two.peer:
            goals.append(Goal(f"throughput, 2 threads {name}", PEER, throughput(two.ours, two.peer), at_least=1.3))
        if two and eight:
            goals.append(
                Goal(f"throughput, 8 threads {name}", "2 threads", throughput(eight.ours, two.ours), at_least=0.8)
            )
    time("string.cold", "time, 100 k strings in random order", 1 / 3)
    time("string.cold.32", "time, 100 k strings in random order, 32 a call", 1 / 3)
    time("string.given", "time, 100 k strings, the key at hand", 1 / 3)
    return goals


def print_shared(pairs):
    """How much of the throughput of two limiters one reaches, beside how much of that of two arrays one does."""
    print("\n### Two threads on one keyed limiter\n")
    rows = []
    for workload, name in SHARED.items():
        if workload not in pairs:
            continue
        row = [name]
        for one in (workload, lines_of(workload)):
            shared, apart = pairs[one].ours, pairs[f"{one}.apart"].ours
            ratios = throughput(shared, apart)
            row += [
                f"{statistics.median(shared):.1f}",
                f"{statistics.median(apart):.1f}",
                f"{statistics.median(ratios):.2f}",
                spread(ratios, 2),
            ]
        rows.append(row)
    half = ["on one, ns", "a copy each, ns", "throughput ÷ it", "lowest–highest"]
    print_table(["keys", *half, *(f"lines {column}" for column in half)], rows)


def lines_of(workload):
    """The same on bare cache lines, in as much memory."""
    name, size, *at_once = workload.split(".")
    return ".".join([name, size, "lines", *at_once])


def shared_goals(pairs):
    """Sharing a limiter may cost a tenth of the throughput, or a tenth more than sharing bare memory does."""
    goals = []
    for workload, name in SHARED.items():
        if workload in pairs:
            ratios = throughput(pairs[workload].ours, pairs[f"{workload}.apart"].ours)
            goals.append(Goal(f"throughput, {name}, 2 threads on one", "a copy each", ratios, at_least=0.9))
            lines = pairs[lines_of(workload)].ours, pairs[f"{lines_of(workload)}.apart"].ours
            beside = [a / b for a, b in zip(ratios, throughput(*lines))]
            goals.append(Goal(f"that ratio, {name}", "that of bare lines", beside, at_least=0.9))
    return goals


def growth(programs, keys, rounds, progress):
    """From nothing to `keys` keys, by each program in turn, in a process of its own. What each says, round by round."""
    found = {name: [] for name in programs}
    for n in range(rounds):
        for name, path in programs.items():
            output = subprocess.run([path, "grow", str(keys)], check=True, capture_output=True, text=True).stdout
            found[name].append(json.loads(output))
            progress(f"growth of {name}: round {n + 1}")
    return found


def print_growth(found):
    keys = next(iter(found.values()))[0]["keys"]
    print(f"\n### Growing to {keys / 1e6:g} M keys of {KEY_BYTES} bytes\n")
    rows = []
    for name, rounds in found.items():
        worst = [one["worst_us"] for one in rounds]
        rows.append(
            [
                name,
                f"{statistics.median(one['bytes_a_key'] for one in rounds):.1f}",
                f"{statistics.median(one['most_bytes_a_key'] for one in rounds):.1f}",
                f"{statistics.median(worst):.0f}",
                spread(worst, 0),
                f"{statistics.median(one['calls_above_1ms'] for one in rounds):.0f}",
            ]
        )
    print_table(
        ["library", "bytes a key", "most, from a tenth of the keys on", "worst call µs", "lowest–highest", "calls > 1 ms"],
        rows,
    )


def growth_goals(found):
    """Memory at the end and the worst call on the way."""
    rounds = found[OURS]
    return [
        Goal("bytes a key beside the key's own", "", [one["bytes_a_key"] - KEY_BYTES for one in rounds], 64),
        Goal("worst call while growing, ms", "", [one["worst_us"] / 1000 for one in rounds], 1),
    ]


class LibraryRun:
    """All of it. `program`: sluice_bench; `peer`: governor_bench, or None."""

    ROUNDS = {"smoke": (1, 20, 100_000, 1), "quick": (5, 200, 10_000_000, 2), "full": (9, 300, 10_000_000, 3)}

    def __init__(self, program, peer, mode, progress):
        self.program, self.peer = program, peer
        self.rounds, self.milliseconds, self.growth_keys, self.growth_rounds = self.ROUNDS[mode]
        self.progress = progress
        self.samples = {}
        self.goals = []

    def pairs(self):
        with contextlib.ExitStack() as stack:
            ours = stack.enter_context(Program(self.program))
            peer = stack.enter_context(Program(self.peer)) if self.peer else None
            for title, names in (("One key", ONE_KEY), ("Many keys", KEYED)):
                pairs = compare(
                    ours,
                    peer,
                    names,
                    self.rounds,
                    self.milliseconds,
                    lambda n, title=title: self.progress(f"{title}: round {n}"),
                )
                print_pairs(title, pairs, names)
                self.samples[title] = {workload: asdict(pair) for workload, pair in pairs.items()}
                self.goals += goals_of(pairs)

    def shared(self, smoke):
        """Two threads on one table of 100 k to 10 M keys (then 3 GB of memory are needed)."""
        names = [name for name in SHARED if not smoke or "100k" in name]
        names += sorted({lines_of(name) for name in names})
        workloads = [each for name in names for each in (name, f"{name}.apart")]
        with Program(self.program) as ours:
            pairs = compare(
                ours,
                None,
                workloads,
                self.rounds,
                self.milliseconds,
                lambda n: self.progress(f"two threads: round {n}"),
            )
        print_shared(pairs)
        self.samples["two threads"] = {workload: pair.ours for workload, pair in pairs.items()}
        self.goals += shared_goals(pairs)

    def grow(self):
        programs = {OURS: self.program} | ({PEER: self.peer} if self.peer else {})
        found = growth(programs, self.growth_keys, self.growth_rounds, self.progress)
        print_growth(found)
        self.samples["growth"] = found
        self.goals += growth_goals(found)

    def cache_misses(self, calls=100_000):
        """Of the last-level cache, at 10 M keys. Takes some minutes."""
        self.progress("cache misses at 10 M keys")
        events = per_call(self.program, "string.10m", calls, cache=True)
        keys = per_call(self.program, "string.10m.keys", calls, cache=True)
        misses = sum(events[name] - keys[name] for name in ("DLmr", "DLmw"))
        print(f"\n10 M strings: {misses:.2f} misses of the last-level cache a decision (callgrind)")
        self.samples["cache misses"] = events
        self.goals.append(Goal("misses of the last-level cache, 10 M strings", "", [misses], 2))

    def waiting(self, program, idle_only):
        """Lateness and CPU of those who wait asynchronously, beside bare Asio timers; the program has rounds of its own."""
        parts = {}
        for part in ("idle",) if idle_only else ("idle", "steady", "flood"):
            self.progress(f"waiting: {part}")
            parts[part] = subprocess.run([program, part], check=True, capture_output=True, text=True).stdout
        print("\n### Waiting\n\n```\n" + "".join(parts.values()).rstrip() + "\n```")
        self.samples["waiting"] = parts

        def figure(part, pattern):
            return [float(re.search(pattern, parts[part]).group(1))]

        self.goals.append(Goal("CPU while 100 k wait, % of a core", "", figure("idle", r"sluice CPU ([\d.]+) %"), 2))
        if idle_only:
            return
        later = [late / 1000 for late in figure("flood", r"p99 ([-+][\d.]+) µs")]
        self.goals.append(Goal("lateness p99 of 100 k above that of bare timers, ms", "", later, 0.2))
        self.goals.append(Goal("CPU at 5 000/s", "bare timers", figure("steady", r"CPU ratio ([\d.]+)"), 1.25))
