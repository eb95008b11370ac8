#!/usr/bin/env python3
"""What a daemon takes while it does little, and how it shares itself out: start, idle, 10 000 idle connections, 1 000 busy ones.

    bench/connections.py [PROTOCOL…]     default: grpc http resp
SLUICE_BINARY names the daemon (default: build/release/sluice). Prints a table with what is to be reached."""

import os
import re
import resource
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from support.frames import CALL, DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, frame, message  # noqa: E402

BINARY = os.environ.get("SLUICE_BINARY", str(ROOT / "build/release/sluice"))
POLICY = ROOT / "bench/policy.yaml"
IDLE, BUSY, SECONDS = 10_000, 1_000, 10.0
BODY = b'{"domain":"bench","descriptors":[{"user":"1"}]}'
CHECK = b"POST /v1/check HTTP/1.1\r\nHost: b\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
THROTTLE = b"*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n$1\r\n9\r\n$1\r\n9\r\n$1\r\n1\r\n"


class Daemon:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        flags = [f"--listen.{name}=127.0.0.1:0" for name in ("grpc", "http", "resp", "admin")]
        self.log = open(os.path.join(self.folder.name, "log"), "w+", encoding="utf-8")
        self.begun = time.monotonic()
        self.process = subprocess.Popen([BINARY, "serve", "--policy", str(POLICY), *flags], stdout=self.log, stderr=self.log)
        while "admin" not in (ports := self.listening()):
            time.sleep(0.0005)
        self.ports = {name: int(port) for name, port in ports.items()}

    def listening(self):
        with open(self.log.name, encoding="utf-8") as log:
            return dict(re.findall(r"listening (\w+) \S*?:(\d+)\n", log.read()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def connect(self, protocol):
        made = socket.create_connection(("127.0.0.1", self.ports[protocol]))
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def memory(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024

    def cpu(self):
        parts = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rsplit(") ", 1)[1].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def request(protocol, n):
    """The n-th request of a connection."""
    if protocol == "grpc":
        hello = PREFACE + frame(SETTINGS) + frame(SETTINGS, 1) if n == 0 else b""
        stream = 1 + 2 * n
        return hello + frame(HEADERS, END_HEADERS, stream, CALL) + frame(DATA, END_STREAM, stream, message("bench", "user", "1"))
    return CHECK if protocol == "http" else THROTTLE


def answers(protocol, data):
    """How many answers end in what came. Each comes in one piece, as it is small and awaited."""
    if protocol == "grpc":
        return data.count(b"grpc-status") or len(re.findall(rb"\0\0.\x01\x05", data, re.S))
    return data.count(b"HTTP/1.1 200") if protocol == "http" else data.count(b"*5\r\n")


def ask(daemon, protocol):
    one = daemon.connect(protocol)
    one.sendall(request(protocol, 0))
    data = b""
    while not answers(protocol, data):
        data += one.recv(65536)
    return one


def idle_connections(daemon, protocol):
    """Bytes of memory for each connection that has asked once."""
    kept = [ask(daemon, protocol) for _ in range(50)]  # what all of them share is there now
    before = daemon.memory()
    kept += [ask(daemon, protocol) for _ in range(IDLE)]
    cost = (daemon.memory() - before) / IDLE
    spent = daemon.cpu()
    time.sleep(5)
    cpu = (daemon.cpu() - spent) / 5
    for one in kept:
        one.close()
    return cost, cpu


def busy_connections(daemon, protocol):
    """(most, least) answers that a connection got, each asking as soon as it is answered."""
    selector = selectors.EpollSelector()
    served = {}
    for _ in range(BUSY):
        one = daemon.connect(protocol)
        one.setblocking(False)
        served[one] = 0
        selector.register(one, selectors.EVENT_READ)
        one.send(request(protocol, 0))
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for key, _ in selector.select(1):
            done = answers(protocol, key.fileobj.recv(65536))
            if done:
                served[key.fileobj] += done
                key.fileobj.send(request(protocol, served[key.fileobj]))
    for one in served:
        one.close()
    return max(served.values()), min(served.values())


def main():
    protocols = sys.argv[1:] or ["grpc", "http", "resp"]
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, {BINARY}\n")
    print("| what | measured | to reach |\n|---|---|---|")
    starts = []
    for _ in range(9):
        with Daemon() as daemon:
            ask(daemon, "http").close()
            starts.append(1000 * (time.monotonic() - daemon.begun))
    starts.sort()
    print(f"| start to first answer, median of 9 (fastest, slowest) | {starts[4]:.0f} ms ({starts[0]:.0f}, {starts[-1]:.0f}) | ≤ 50 ms |")
    with Daemon() as daemon:
        time.sleep(1)
        print(f"| memory when idle | {daemon.memory() / 2**20:.1f} MiB | ≤ 20 MB |")
        spent = daemon.cpu()
        time.sleep(5)
        print(f"| CPU when idle | {(daemon.cpu() - spent) / 5:.3f} cores | 0 |")
    for protocol in protocols:
        with Daemon() as daemon:
            cost, cpu = idle_connections(daemon, protocol)
            print(f"| {IDLE} idle connections, {protocol} | {cost / 1024:.1f} KiB each, {cpu:.3f} cores | ≤ 12 KiB |")
    for protocol in protocols:
        with Daemon() as daemon:
            most, least = busy_connections(daemon, protocol)
            ratio = most / least if least else float("inf")
            print(f"| {BUSY} busy connections, {protocol}: most served ÷ least | {most} ÷ {least} = {ratio:.2f} | ≤ 2 |")


if __name__ == "__main__":
    main()
