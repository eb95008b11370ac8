"""A day of ordinary life in little time: callers who come and go on all ports, well-behaved and not, keys that are never seen again, and
policies that change. Memory, descriptors and threads stay where they are."""

import http.client
import os
import random
import socket
import struct
import threading
import unittest
from pathlib import Path

from support.daemon import Sluice
from support.frames import HEADERS, Peer
from support.program import wait_until

MINUTES = float(os.environ.get("SLUICE_SOAK_MINUTES", "0.3"))  # the long form: 30
SAMPLES = 30
MOST_GROWTH = 2 << 20  # bytes, and a twentieth of what there is, of the last third over the second


def policy(version):
    return f"""domain: soak
descriptors:
  - key: user
    rate_limit: {{ name: PerUser, unit: second, requests_per_unit: {100 + version % 7}, algorithm: token_bucket, burst: 200 }}
  - key: log
    rate_limit: {{ name: Log, unit: second, requests_per_unit: {50 + version % 5}, algorithm: sliding_log }}
"""


class Life:
    """Threads that do one thing again and again until they are stopped; the first that fails is told."""

    def __init__(self):
        self.stopping = threading.Event()
        self.problems, self.done, self.threads = [], 0, []

    def begin(self, work, pause=0.0):
        def run():
            while not self.stopping.wait(pause):
                try:
                    work()
                    self.done += 1
                except Exception as problem:  # any: a test fails with it
                    if not self.stopping.is_set():
                        self.problems.append(f"{work.__name__}: {problem!r}")
                        return

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def end(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()


class Soak(unittest.TestCase):
    def setUp(self):
        self.daemon = Sluice(policy(0), "--listen.resp", "127.0.0.1:0", "--threads", "2")
        self.addCleanup(self.daemon.stop)
        self.resp = int(self.daemon.wait_for(self.find_resp, "listening resp"))
        self.life = Life()

    def find_resp(self):
        line = next((line for line in self.daemon.log().splitlines() if "listening resp" in line), None)
        return line and line.rsplit(":", 1)[1].split()[0]

    def state(self):
        process = f"/proc/{self.daemon.process.pid}"
        status = Path(process, "status").read_text(encoding="ascii")
        numbers = {line.split()[0]: line.split()[1] for line in status.splitlines() if line.startswith(("VmRSS:", "Threads:"))}
        return {
            "memory": int(numbers["VmRSS:"]) * 1024,
            "descriptors": len(os.listdir(f"{process}/fd")),
            "threads": int(numbers["Threads:"]),
        }

    def http_calls(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon.ports["http"], timeout=30)
        for _ in range(50):
            key = random.choice(("user", "log"))
            connection.request("POST", "/v1/check", '{"domain":"soak","descriptors":[{"%s":"%d"}]}' % (key, random.getrandbits(40)))
            answer = connection.getresponse()
            answer.read()
            if answer.status not in (200, 429):
                raise AssertionError(answer.status)
        connection.close()

    def grpc_calls(self):
        with Peer(self.daemon.ports["grpc"]) as peer:
            for stream in range(1, 100, 2):
                kind = peer.call(stream, "soak", "user", str(random.getrandbits(40)))[0]
                if kind != HEADERS:
                    raise AssertionError(kind)

    def resp_calls(self):
        with socket.create_connection(("127.0.0.1", self.resp), 30) as connection:
            lines = connection.makefile("rb")
            for _ in range(50):
                key = b"%d" % random.getrandbits(40)
                connection.sendall(b"*5\r\n$11\r\nCL.THROTTLE\r\n$%d\r\n%b\r\n$2\r\n15\r\n$2\r\n30\r\n$1\r\n1\r\n" % (len(key), key))
                answer = [lines.readline() for _ in range(6)]
                if answer[0] != b"*5\r\n":
                    raise AssertionError(answer)

    def rude_calls(self):
        port = random.choice((self.daemon.ports["http"], self.daemon.ports["grpc"], self.resp))
        rude = socket.create_connection(("127.0.0.1", port), 30)
        rude.sendall(random.choice((b"POST /v1/check HTTP/1.1\r\nContent-Le", b"PRI * HTTP/2.0\r\n", b"*5\r\n$11\r\nCL.TH", os.urandom(40))))
        if random.random() < 0.5:  # a reset rather than an end
            rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        rude.close()

    def change_policy(self):
        self.version = getattr(self, "version", 0) + 1
        beside = self.daemon.policy_path + ".new"
        Path(beside).write_text(policy(self.version), encoding="utf-8")
        os.rename(beside, self.daemon.policy_path)

    def test_a_day(self):
        before = self.state()
        for work in (self.http_calls, self.http_calls, self.grpc_calls, self.resp_calls):
            self.life.begin(work)
        self.life.begin(self.rude_calls, 0.005)
        self.life.begin(self.change_policy, min(2, MINUTES * 60 / 10))
        samples = []
        try:
            for _ in range(SAMPLES):
                self.life.stopping.wait(MINUTES * 60 / SAMPLES)
                samples.append(self.state())
        finally:
            self.life.end()
        self.assertEqual(self.life.problems, [])
        second, last = samples[SAMPLES // 3 : 2 * SAMPLES // 3], samples[2 * SAMPLES // 3 :]
        most = {name: (max(one[name] for one in second), max(one[name] for one in last)) for name in before}
        print(f"{self.life.done} rounds in {MINUTES * 60:.0f} s; most in the second and the last third: {most}; before: {before}")
        self.assertGreater(self.life.done, 100)
        self.assertGreater(self.version, 3)
        self.assertLess(most["memory"][1], most["memory"][0] * 1.05 + MOST_GROWTH)
        self.assertLessEqual(most["threads"][1], before["threads"])
        self.assertLess(most["descriptors"][1], before["descriptors"] + 100)
        # All connections are closed, and so are the daemon's ends of them.
        wait_until(lambda: self.state()["descriptors"] <= before["descriptors"], "the descriptors are back", 60)
