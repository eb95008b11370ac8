"""The daemon on a real redis-server that goes away and comes back."""

import time
import unittest

from support.curl import curl
from support.daemon import Sluice
from support.program import wait_until
from support.redis import Redis

POLICY = """
domain: test
descriptors:
  - key: local
    rate_limit: { name: Local, unit: hour, requests_per_unit: 10, algorithm: token_bucket, burst: 3 }
  - key: allow
    rate_limit: { name: Allow, unit: hour, requests_per_unit: 10, algorithm: token_bucket, burst: 3, on_store_failure: allow }
  - key: deny
    rate_limit: { name: Deny, unit: hour, requests_per_unit: 10, algorithm: token_bucket, burst: 3, on_store_failure: deny }
"""


TIMEOUT = 0.5  # seconds; a busy machine must not look like a failing Redis


class OnRedis(unittest.TestCase):
    def setUp(self):
        self.redis = self.enterContext(Redis())
        self.flags = ["--store.redis.url", self.redis.url, "--store.redis.timeout", f"{TIMEOUT}s"]
        self.sluice = self.enterContext(Sluice(POLICY, *self.flags))

    def check(self, key, value="x"):
        return curl(self.sluice.url("/v1/check"), data={"domain": "test", "descriptors": [{key: value}]})

    def wait_for_redis(self):
        """Until decisions come from the server, by whichever thread of the daemon: each has a connection of its own.

        A value of its own each time, so that nothing is taken from others.
        """

        def comes_from_it():
            return all(self.check("allow", str(time.monotonic())).json["source"] == "redis" for _ in range(20))

        wait_until(comes_from_it, "back on Redis")

    def metric(self, name):
        lines = curl(self.sluice.url("/metrics", "admin")).body.splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name) and line[len(name)] in " {")

    def test_killed_and_started_again(self):
        self.wait_for_redis()
        self.assertEqual(self.check("local").json["remaining"], 2)
        self.redis.kill()

        sources, statuses = zip(*[(answer.json["source"], answer.status) for answer in map(self.check, ["local"] * 4)])
        self.assertEqual(set(sources), {"fallback_local"})
        self.assertEqual(statuses, (200, 200, 200, 429))
        # Every daemon has lost the same server: none of them is worse than the others.
        self.assertEqual(curl(self.sluice.url("/healthcheck")).status, 200)

        self.redis.run()
        self.wait_for_redis()
        answer = self.check("local")
        self.assertEqual((answer.status, answer.json["source"], answer.json["remaining"]), (200, "redis", 2))
        self.assertEqual(curl(self.sluice.url("/healthcheck")).status, 200)

    def test_accepts_and_never_answers(self):
        self.wait_for_redis()
        self.redis.pause()
        begin = time.monotonic()
        calls = 60
        for _ in range(calls):
            self.assertEqual(self.check("allow").json["source"], "fallback_allow")
        # The first five wait, then the breaker spares the wait but for a probe now and then.
        self.assertLess(time.monotonic() - begin, calls * TIMEOUT)
        self.redis.resume()
        self.wait_for_redis()

    def test_starts_without_a_server_and_finds_it_later(self):
        self.redis.kill()
        with Sluice(POLICY, *self.flags) as late:
            answer = curl(late.url("/v1/check"), data={"domain": "test", "descriptors": [{"allow": "x"}]})
            self.assertEqual((answer.status, answer.json["source"]), (200, "fallback_allow"))
            self.redis.run()
            self.sluice = late
            self.wait_for_redis()

    def test_public_report_38(self):
        self.wait_for_redis()
        self.redis.kill()
        before = self.metric("sluice_fallback_decisions_total")
        for _ in range(20):
            answer = self.check("allow")
            self.assertEqual((answer.status, answer.json["reason"]), (200, "store_unavailable"))
            self.assertNotIn("remaining", answer.json)
            self.assertFalse([name for name in answer.fields if "ratelimit" in name], answer.fields)
        self.assertEqual(self.metric("sluice_fallback_decisions_total") - before, 20)

    def test_public_report_39(self):
        self.wait_for_redis()
        self.redis.kill()
        answer = self.check("deny")
        self.assertEqual((answer.status, answer.json["reason"]), (503, "store_unavailable"))
        self.assertNotIn("remaining", answer.json)
        self.assertFalse([name for name in answer.fields if "ratelimit" in name], answer.fields)

    def test_no_key_stays_for_ever(self):
        self.wait_for_redis()
        for key in ("local", "allow", "deny"):
            for _ in range(4):
                self.check(key)
        names = [line.decode() for line in self.redis.ask("KEYS *").split(b"\r\n")[2::2] if line]
        self.assertGreaterEqual(len(names), 3)
        for name in names:
            self.assertGreater(int(self.redis.ask(f"PTTL {name}")[1:]), 0, name)


if __name__ == "__main__":
    unittest.main()
