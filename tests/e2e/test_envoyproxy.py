"""The real envoyproxy/ratelimit and Sluice with the same policy, environment and Redis: every answer field by field.

SLUICE_REQUESTS: how many random requests (default 1000; by hand 5000 and more). SLUICE_SEED: which.
"""

import json
import os
import random
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import grpc
from envoy.extensions.common.ratelimit.v3.ratelimit_pb2 import RateLimitDescriptor
from envoy.service.ratelimit.v3.rls_pb2 import RateLimitRequest
from envoy.service.ratelimit.v3.rls_pb2_grpc import RateLimitServiceStub
from envoy.type.v3.ratelimit_unit_pb2 import RateLimitUnit
from google.protobuf.json_format import MessageToDict, MessageToJson

from support.program import wait_until
from support.ratelimit import environment, original, replacement, series
from support.redis import Redis
from support.statsd import Statsd

REQUESTS = int(os.environ.get("SLUICE_REQUESTS", "1000"))
SEED = int(os.environ.get("SLUICE_SEED", "1"))
LENGTHS = {"hour": 3600, "day": 86400, "week": 7 * 86400, "month": 30 * 86400, "year": 365 * 86400}
# A window that ends while a test runs would be another for each of the two.
UNITS = [unit for unit, length in LENGTHS.items() if length - time.time() % length > 1800]
HEADERS = {"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}


def policy(draw):
    def limit(most, **more):
        return {"unit": draw.choice(UNITS), "requests_per_unit": draw.randint(0, most), **more}

    below = [
        {"key": "path", "value": "/api/*", "rate_limit": limit(8)},
        {"key": "path", "value": "/api/exact", "rate_limit": limit(8)},
        {"key": "path", "value": "/shared/*", "share_threshold": True, "rate_limit": limit(30)},
        {"key": "path", "rate_limit": limit(6)},
    ]
    return {
        "domain": "test",
        "descriptors": [
            {"key": "user", "rate_limit": limit(12, name="PerUser"), "descriptors": below},
            {"key": "user", "value": "vip", "rate_limit": limit(100), "descriptors": below[:1]},
            {"key": "closed", "rate_limit": {"unit": UNITS[0], "requests_per_unit": 0}},
            {"key": "open", "rate_limit": {"unlimited": True, "name": "Open"}},
            {"key": "free"},
            {"key": "shadow", "shadow_mode": True, "rate_limit": limit(5)},
            {"key": "detailed", "detailed_metric": True, "rate_limit": limit(5)},
            {"key": "valued", "value_to_metric": True, "descriptors": [{"key": "leaf", "rate_limit": limit(9)}]},
            {"key": "replacing", "rate_limit": limit(9, name="New", replaces=[{"name": "PerUser"}])},
            {"key": "deep", "descriptors": [{"key": "a", "value": "1", "descriptors": [{"key": "b", "rate_limit": limit(9)}]}]},
        ],
    }


def entries(draw):
    # New callers keep coming, as counters that are full have little to tell.
    names = ["ann", "bob", "10.1.2.3", "vip", "ü|:", *(f"caller {draw.randint(0, REQUESTS // 40)}" for _ in range(5))]
    user = ("user", draw.choice(names))
    path = ("path", draw.choice(["/api/x", "/api/y", "/api/exact", "/shared/1", "/shared/2", "/ap", "/"]))
    return draw.choice(
        [
            [user],
            [user, path],
            [user, path, ("more", "1")],
            [("closed", draw.choice("xy"))],
            [("open", "1")],
            [("free", "1")],
            [("shadow", draw.choice("xy"))],
            [("detailed", draw.choice("xyz"))],
            [("valued", draw.choice("xyz")), ("leaf", draw.choice("pq"))],
            [("replacing", "1")],
            [("deep", draw.choice("12")), ("a", draw.choice("12")), ("b", draw.choice("12"))],
            [("deep", "")],
            [("unknown", "1")],
        ]
    )


def descriptor(draw):
    made = RateLimitDescriptor(entries=[RateLimitDescriptor.Entry(key=key, value=value) for key, value in entries(draw)])
    if draw.random() < 0.1:
        # Of keys that no limit of the policy counts: there, both would share a counter.
        del made.entries[:]
        made.entries.append(RateLimitDescriptor.Entry(key="own", value=draw.choice("xy")))
        made.limit.requests_per_unit = draw.randint(0, 9)
        made.limit.unit = RateLimitUnit.Value(UNITS[-1].upper())
    if draw.random() < 0.2:
        made.hits_addend.value = draw.choice([0, 0, 1, 2, 5, 1000, 2**33])
    return made


def request(draw):
    return RateLimitRequest(
        domain=draw.choice(["test"] * 30 + ["other", ""]),
        descriptors=[descriptor(draw) for _ in range(draw.choice([0, 1, 1, 1, 2, 2, 3, 4]))],
        hits_addend=draw.choice([0, 0, 0, 1, 1, 2, 7]),
    )


def normal(answer):
    """A JSON answer without what may differ: seconds, which are taken apart, and what the original spaces at random."""
    seconds = []
    for status in answer.get("statuses", []):
        seconds.append(int(status.pop("durationUntilReset", "0s").removesuffix("s")))
    for header in answer.get("responseHeadersToAdd", []):
        if header.get("key") == "RateLimit-Reset":
            seconds.append(int(header.pop("value")))
    metadata = answer.get("dynamicMetadata", {})
    metadata.pop("quotaModeEnabled", None)  # later versions of the original have it no more
    for one in metadata.get("descriptors", []):
        if "limit" in one:
            one["limit"] = " ".join(sorted(one["limit"].split()))
    return answer, seconds


class Differences(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.draw = random.Random(SEED)
        cls.redis = cls.enterClassContext(Redis())
        root = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="sluice-e2e-runtime-"))
        files = Path(root) / "current" / "ratelimit"
        (files / "config").mkdir(parents=True)
        (files / "config" / "test.yaml").write_text(json.dumps(policy(cls.draw)), encoding="utf-8")
        variables = environment(
            cls.redis,
            files,
            LIMIT_RESPONSE_HEADERS_ENABLED="true",
            RESPONSE_DYNAMIC_METADATA="true",
            USE_PROMETHEUS="true",
            STATS_FLUSH_INTERVAL="100ms",
        )
        cls.both = [cls.enterClassContext(original(variables)), cls.enterClassContext(replacement(variables))]
        cls.stubs = []
        for peer in cls.both:
            channel = grpc.insecure_channel(peer.grpc)
            cls.addClassCleanup(channel.close)
            cls.stubs.append(RateLimitServiceStub(channel))

    @staticmethod
    def over_grpc(stub, asked):
        try:
            return MessageToDict(stub.ShouldRateLimit(asked, timeout=60))
        except grpc.RpcError:
            return "an error"  # its code is UNKNOWN there, whatever it is

    @staticmethod
    def over_json(peer, text):
        try:
            with urllib.request.urlopen(urllib.request.Request(peer.url("/json"), data=text, method="POST"), timeout=60) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as reply:
            body = reply.read()
            return reply.code, (body.decode() if reply.code == 400 else json.loads(body))

    @staticmethod
    def page(peer, path, listener):
        with urllib.request.urlopen(peer.url(path, listener), timeout=60) as reply:
            return reply.read().decode()

    def assert_same(self, theirs, ours, asked):
        if isinstance(theirs, dict) and isinstance(ours, dict):
            (theirs, their_seconds), (ours, our_seconds) = normal(theirs), normal(ours)
            self.assertEqual(len(their_seconds), len(our_seconds), asked)
            for one, other in zip(their_seconds, our_seconds):
                self.assertLessEqual(abs(one - other), 5, asked)
        self.assertEqual(theirs, ours, f"seed {SEED}: {asked}")

    def test_1_random_requests(self):
        for number in range(REQUESTS):
            asked = request(self.draw)
            if number % 2 == 0:
                self.assert_same(*(self.over_grpc(stub, asked) for stub in self.stubs), asked)
                continue
            text = MessageToJson(asked).encode()
            (status, theirs), (our_status, ours) = (self.over_json(peer, text) for peer in self.both)
            self.assertEqual(status, our_status, asked)
            self.assert_same(theirs, ours, asked)

    def test_2_statistics(self):
        """After all those requests: names, hits near, within and over each limit, unknown domains, and calls."""
        for peer in self.both:
            with grpc.insecure_channel(peer.grpc) as channel:
                channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=60)  # no call of ShouldRateLimit

        def counted(page):
            calls = series(page, "ratelimit_service_total_")
            return {**series(page), **{key: calls[key] for key in calls if key[1] == (("grpc_method", "ShouldRateLimit"),)}}

        def pages():
            theirs, ours = (counted(self.page(peer, "/metrics", "metrics")) for peer in self.both)
            return theirs == ours or (theirs, ours)

        try:
            wait_until(lambda: pages() is True, "the same statistics", within=10)
        except TimeoutError:
            theirs, ours = pages()
            self.assertEqual(theirs.items() - ours.items(), ours.items() - theirs.items())

    def test_3_the_configuration_in_force(self):
        theirs, ours = (sorted(self.page(peer, "/rlconfig", "debug").split("\n")) for peer in self.both)
        # An unlimited limit has no unit of its own there.
        self.assertEqual(theirs, ours)

    def test_4_bad_json(self):
        for text in (b"", b"{", b"[]", b'{"unknown":1}', b'{"domain":5}', b'{"domain":"test"}', b"{}"):
            theirs, ours = (self.over_json(peer, text) for peer in self.both)
            self.assertEqual(theirs, ours, text)

    def test_5_a_caller_cannot_drain_another_key(self):
        """There, (user, x_path_/) and (user, x), (path, /) are one counter: done right here."""

        def ask(*pairs):
            made = RateLimitDescriptor(entries=[RateLimitDescriptor.Entry(key=key, value=value) for key, value in pairs])
            made.limit.requests_per_unit, made.limit.unit = 1, RateLimitUnit.YEAR
            return [
                stub.ShouldRateLimit(RateLimitRequest(domain="test", descriptors=[made]), timeout=60).overall_code
                for stub in self.stubs
            ]

        self.assertEqual(ask(("drain", "x_path_y")), [1, 1])
        self.assertEqual(ask(("drain", "x"), ("path", "y")), [2, 1])


class OneLimit(unittest.TestCase):
    """What needs daemons of its own."""

    POLICY = """
domain: test
descriptors:
  - key: user
    rate_limit: { unit: year, requests_per_unit: 10 }
  - key: plan
    value: free
    detailed_metric: true
    shadow_mode: true
    rate_limit: { unit: year, requests_per_unit: 2 }
"""

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="sluice-e2e-runtime-")))
        self.files = self.folder / "current" / "ratelimit"
        (self.files / "config").mkdir(parents=True)
        (self.files / "config" / "test.yaml").write_text(self.POLICY, encoding="utf-8")
        self.redis = self.enterContext(Redis())

    def start(self, peer, **variables):
        return self.enterContext(peer(environment(self.redis, self.files, **variables)))

    @staticmethod
    def ask(peer, *descriptors, domain="test"):
        entry = RateLimitDescriptor.Entry
        made = [RateLimitDescriptor(entries=[entry(key=key, value=value)]) for key, value in descriptors]
        with grpc.insecure_channel(peer.grpc) as channel:
            return RateLimitServiceStub(channel).ShouldRateLimit(RateLimitRequest(domain=domain, descriptors=made), timeout=60)

    def test_grpc_over_a_unix_socket(self):
        for number, peer in enumerate((original, replacement)):
            started = self.start(peer, GRPC_UDS=str(self.folder / f"{number}.sock"))
            status = self.ask(started, ("user", f"caller of {number}")).statuses[0]
            self.assertEqual((status.code, status.limit_remaining), (1, 9))

    def test_statsd_names_and_figures(self):
        sinks = [self.enterContext(Statsd()) for _ in range(2)]
        for number, (peer, sink) in enumerate(zip((original, replacement), sinks)):
            port = str(sink.port)
            started = self.start(peer, USE_STATSD="true", STATSD_HOST="127.0.0.1", STATSD_PORT=port, STATS_FLUSH_INTERVAL="100ms")
            for _ in range(12):
                self.ask(started, ("user", f"caller of {number}"), ("plan", "free"))
            self.ask(started, ("none", "x"))
            self.ask(started, ("user", "x"), domain="other")
            with self.assertRaises(grpc.RpcError):
                self.ask(started, domain="")

        def seen():
            return [sink.seen("ratelimit.service", "ratelimit_server") for sink in sinks]

        try:
            wait_until(lambda: seen()[0] == seen()[1] != ({}, {}), "the same statistics", within=20)
        except TimeoutError:
            theirs, ours = seen()
            self.assertEqual(theirs, ours)
            raise


if __name__ == "__main__":
    unittest.main()
