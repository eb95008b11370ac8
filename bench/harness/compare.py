"""Comparisons: every server in turn, round after round, under the same load."""

import json
import os
import statistics
import subprocess
from dataclasses import dataclass, field


@dataclass
class Sample:
    """One server, one round."""

    calls: int
    seconds: float
    server_cpu: float
    client_cpu: float
    p50_us: float
    p99_us: float

    @property
    def cpu_us(self):
        """Server CPU per call in microseconds: what is compared."""
        return self.server_cpu / self.calls * 1e6


@dataclass
class Series:
    """All rounds of one server."""

    name: str
    samples: list = field(default_factory=list)

    def values(self, attribute):
        return [getattr(sample, attribute) for sample in self.samples]

    def median(self, attribute):
        return statistics.median(self.values(attribute))

    @property
    def throughput(self):
        return statistics.median(s.calls / s.seconds for s in self.samples)

    @property
    def client_load(self):
        """Cores the client kept busy."""
        return statistics.median(s.client_cpu / s.seconds for s in self.samples)


def drive(command):
    """Runs a load driver. It prints one JSON object with calls, errors, seconds, p50_us and p99_us."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with process.stdout:
        output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} failed with {process.returncode}: {output.strip()}")
    report = json.loads(output.strip().splitlines()[-1])
    if report["errors"] or report.get("denied") or not report["calls"]:
        raise RuntimeError(f"{command[0]}: not every call was answered as it should be: {report}")
    return report, usage.ru_utime + usage.ru_stime


def measure(server, load, seconds):
    """One round: all the server's CPU between the client's start and its end, and all of the client's calls."""
    before = server.cpu_seconds()
    try:
        report, client_cpu = drive(load(server.port, seconds))
    except RuntimeError as error:
        raise RuntimeError(f"{server.name}: {error}") from None
    server_cpu = server.cpu_seconds() - before
    return Sample(report["calls"], report["seconds"], server_cpu, client_cpu, report["p50_us"], report["p99_us"])


def compare(servers, load, rounds, seconds, progress):
    """Warms every server up, then measures all of them `rounds` times, each round beginning with another one."""
    for server in servers:
        measure(server, load, min(seconds, 0.5))
    series = {server.name: Series(server.name) for server in servers}
    for n in range(rounds):
        first = n % len(servers)
        for server in servers[first:] + servers[:first]:
            series[server.name].samples.append(measure(server, load, seconds))
        progress(n + 1)
    for server in servers:
        server.check()
    return series


def best(series, names):
    """The one of `names` that used least CPU per call."""
    return min((series[name] for name in names), key=lambda one: one.median("cpu_us"))


def ratios(ours, peer):
    """CPU per call of `ours` as a multiple of the peer's, round by round."""
    return [a / b for a, b in zip(ours.values("cpu_us"), peer.values("cpu_us"))]
