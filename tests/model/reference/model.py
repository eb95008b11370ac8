#!/usr/bin/env python3
"""Exact reference model of Sluice's decisions (docs/semantics.md, sections 2 to 5). README.md has the trace format.

    model.py run   < trace.jsonl      answers, one JSON line for each line of the trace
    model.py check < vectors.jsonl    compares the answers with each line's "want"; exit code 1 on a difference
    model.py random --seed N --algorithm A --ops K      a random trace with its answers in "want"
"""
import argparse
import copy
import json
import math
import sys
from fractions import Fraction

import algorithms
from algorithms import ALGORITHMS, MAX_TOKENS, field

VERBS = ("refund", "settle", "penalize", "set_limit", "release", "reset")


class Model:
    def __init__(self):
        self.specs, self.limiters = {}, {}

    def limiter(self, limit, key):
        if (limit, key) not in self.limiters:
            spec = self.specs[limit]
            self.limiters[limit, key] = ALGORITHMS[spec["algorithm"]](spec)
        return self.limiters[limit, key]

    def check(self, charges, now):
        """All or nothing. charges: [[limit, key, cost], ...]; the same key twice is judged on the sum."""
        merged = {}
        for index, (limit, key, cost) in enumerate(charges):
            field({"cost": cost}, "cost", 0, MAX_TOKENS)
            first, total = merged.get((limit, key), (index, 0))
            merged[limit, key] = first, total + cost
        rows = []
        for (limit, key), (index, cost) in merged.items():
            one = self.limiter(limit, key)
            at = one.clamp(now)
            rows.append((one, at, cost, index, *one.judge(cost, at)))
        ok = all(row[4] for row in rows)
        answers = []
        for one, at, cost, index, fits, retry in rows:
            extra = one.extra(cost, at, fits)
            if ok and cost:
                one.put(cost, at)
            elif not fits:
                one.count_denied(cost, at)
            answers.append(({**one.view(at), "retry_after": retry, **extra}, index, fits))
        if ok:                               # the least remaining/limit rules; the first of equals
            best = min(answers, key=lambda a: (Fraction(a[0]["remaining"], a[0]["limit"]) if a[0]["limit"] else -1))
        else:                                # the longest wait rules; never is the longest; the first of equals
            best = max((a for a in answers if not a[2]), key=lambda a: math.inf if a[0]["retry_after"] is None else a[0]["retry_after"])
        answer = {"allowed": ok, **best[0]}
        if len(charges) > 1:
            answer["which"] = best[1]
            delays = [a[0]["delay"] for a in answers if "delay" in a[0]]
            answer.pop("mark", None), answer.pop("lease", None), answer.pop("delay", None)
            if delays:
                answer["delay"] = max(delays) if ok else None
            answer["leases"] = [a[0].get("lease") for a in answers if "lease" in a[0]] if ok else []
        return answer

    def apply(self, op):
        verb, now = op["op"], op.get("now")
        if verb == "limit":
            spec = {k: v for k, v in op.items() if k not in ("op", "id", "want")}
            ALGORITHMS[spec["algorithm"]](spec)
            self.specs[op["id"]] = spec
            return {}
        if verb == "check":
            return self.check(op["charges"], now)
        if verb == "peek":
            trial = Model()
            trial.limiters = {(limit, key): copy.deepcopy(self.limiter(limit, key)) for limit, key, _ in op["charges"]}
            return trial.check(op["charges"], now)
        one = self.limiter(op["limit"], op["key"])
        if verb not in VERBS or getattr(one, verb, None) is None:
            raise ValueError(f"op: {verb} is not one of {one.spec['algorithm']}")
        for name in ("cost", "reserved", "actual"):
            if name in op:
                field(op, name, 0, MAX_TOKENS)
        if verb in ("refund", "penalize"):
            return getattr(one, verb)(op["cost"], now, *([op["at"]] if "at" in op else []))
        if verb == "settle":
            return one.settle(op["reserved"], op["actual"], now, op.get("at"))
        if verb == "set_limit":
            return one.set_limit({**one.spec, **op["to"]}, now)
        if verb == "release":
            return one.release(op["lease"], now)
        if verb == "reset":
            return one.reset(now)


def run(lines, compare):
    model, wrong = Model(), 0
    for number, line in enumerate(lines, 1):
        op = json.loads(line)
        try:
            got = model.apply(op)
        except ValueError as error:
            got = {"error": str(error)}
        if not compare:
            print(json.dumps(got))
        elif op["op"] != "limit" and got != op["want"]:
            wrong += 1
            print(f"line {number}: {line.strip()}\n  got {json.dumps(got)}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "check", "random"])
    parser.add_argument("--us", action="store_true", help="times are microseconds (Redis), not nanoseconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--algorithm", default="token_bucket", choices=[*ALGORITHMS, "multi"])
    parser.add_argument("--ops", type=int, default=1000)
    parser.add_argument("--monotone", action="store_true", help="random: the clock never steps back (for one-word limiters)")
    options = parser.parse_args()
    if options.us:
        algorithms.use_microseconds()
    if options.command == "random":
        import traces
        if options.monotone:
            traces.OLDER = 0
        for op in traces.random_trace(options.seed, options.algorithm, options.ops):
            print(json.dumps(op, separators=(",", ":")))
        return 0
    return run(sys.stdin, options.command == "check")


if __name__ == "__main__":
    sys.exit(main())
