#!/usr/bin/env python3
"""What callers notice of a policy that is loaded again every second: latency at half load, with a thousand limits.

    bench/reload.py [SECONDS]     default: 10; of each round, of which there are three with reloads and three without, in turn
SLUICE_BINARY and RLSLOAD name the programs (default: build/release/sluice, build/release/bench/rlsload)."""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BINARY = os.environ.get("SLUICE_BINARY", str(ROOT / "build/release/sluice"))
RLSLOAD = os.environ.get("RLSLOAD", str(ROOT / "build/release/bench/rlsload"))
LIMITS, ROUNDS, GOAL = 1000, 3, 1.5


def policy(version):
    """Every load changes the numbers of all limits."""
    lines = ["domain: bench", "descriptors:"]
    for n in range(LIMITS - 1):
        lines += [f"  - key: service{n}", f"    rate_limit: {{ unit: second, requests_per_unit: {1000 + version} }}"]
    lines += ["  - key: user", f"    rate_limit: {{ unit: second, requests_per_unit: {10**9 + version}, algorithm: token_bucket, burst: 1000000000 }}"]
    return "\n".join(lines) + "\n"


def replace(file, version):
    beside = file.with_suffix(".new")
    beside.write_text(policy(version), encoding="utf-8")
    beside.rename(file)


def load(port, *options):
    done = subprocess.run([RLSLOAD, "--target", f"127.0.0.1:{port}", *options], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"bench/reload.py: {done.stderr or done.stdout}")
    answer = json.loads(done.stdout)
    if answer["denied"] != 0 or answer["errors"] != 0:
        sys.exit(f"bench/reload.py: not every call was let in: {answer}")
    return answer


def reloads(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        return int(re.search(r'sluice_policy_reloads_total\{result="ok"\} (\d+)', answer.read().decode())[1])


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "policies", "policy.yaml")
        file.parent.mkdir()
        replace(file, 0)
        log = Path(folder, "log")
        flags = [f"--listen.{name}=127.0.0.1:0" for name in ("grpc", "http", "admin")]
        with open(log, "w", encoding="utf-8") as output:
            daemon = subprocess.Popen(
                [BINARY, "serve", "--policy", str(file.parent), "--threads", "1", *flags], stdout=output, stderr=output
            )
        try:
            while daemon.poll() is None and "admin" not in (ports := dict(re.findall(r"listening (\w+) \S*?:(\d+)\n", log.read_text(encoding="utf-8")))):
                time.sleep(0.01)
            if daemon.poll() is not None:
                sys.exit(f"bench/reload.py: the daemon ended: {log.read_text(encoding='utf-8')[-300:]}")
            whole = load(ports["grpc"], "--seconds", "3")["calls_per_second"]
            half = ["--rate", str(whole / 2), "--seconds", str(seconds), "--in-flight", "500"]
            p50, p99, version = {True: [], False: []}, {True: [], False: []}, 0
            for number in range(2 * ROUNDS):
                is_changing = number % 2 == 1
                stop = threading.Event()

                def change():
                    nonlocal version
                    while not stop.wait(1):
                        version += 1
                        replace(file, version)

                before = reloads(ports["admin"])
                changer = threading.Thread(target=change) if is_changing else None
                if changer:
                    changer.start()
                answer = load(ports["grpc"], *half)
                if changer:
                    stop.set()
                    changer.join()
                    time.sleep(1)
                p50[is_changing].append(answer["p50_us"])
                p99[is_changing].append(answer["p99_us"])
                print(f"{'a reload a second' if is_changing else 'no reload':18} {answer['calls_per_second']:8.0f} calls/s  p50 {answer['p50_us']:6.0f} µs"
                      f"  p99 {answer['p99_us']:6.0f} µs  {reloads(ports['admin']) - before} reloads of {LIMITS} limits")
            ratios = [a / b for a, b in zip(p99[True], p99[False])]
            print(f"p99 ÷ that without: {statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f}), to reach: ≤ {GOAL}")
        finally:
            daemon.terminate()
            daemon.wait()


main()
