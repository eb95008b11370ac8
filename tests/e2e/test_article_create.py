"""examples/policies/article.yaml: ten a second, thirty at once. Thirty-one calls at once, on memory and on Redis."""

import subprocess
import time
import unittest

from support import curl as curl_support
from support import redis as redis_support
from support.curl import curl
from support.daemon import ROOT, Sluice
from support.pipeline import post_at_once
from support.redis import Redis

POLICY = ROOT / "examples/policies/article.yaml"
ONE_TOKEN = 0.1  # seconds after which the bucket has another token, and a thirty-first call passes
TRIES = 20


def body(user):
    return {"domain": "shop", "descriptors": [{"user": user}]}


class ThirtyOneAtOnce:
    """The tests; `sluice` and `source` are set by those that inherit."""

    def answers(self, user):
        """31 requests in one write; with another user until all were sent and answered before a token came back."""
        for n in range(TRIES):
            answers, elapsed = post_at_once(self.sluice.ports["http"], "/v1/check", [body(f"{user}-{n}")] * 31)
            if elapsed < ONE_TOKEN:
                return answers
        self.fail(f"31 requests took more than {ONE_TOKEN} s, {TRIES} times")

    def test_thirty_pass_and_one_is_told_to_wait(self):
        before = self.denied_in_metrics()
        answers = self.answers("pipelined")
        self.assertEqual([answer.status for answer in answers], [200] * 30 + [429])
        self.assertEqual([answer.json["remaining"] for answer in answers], [*range(29, -1, -1), 0])
        denied = answers[-1]
        self.assertEqual(denied.one("Retry-After"), "1")
        self.assertEqual((denied.json["limit_name"], denied.json["limit"]), ("ArticleCreate", 30))
        self.assertTrue(0 < denied.json["retry_after"] <= ONE_TOKEN, denied.body)
        self.assertEqual(denied.json["source"], self.source)
        self.assertIn('"ArticleCreate"', denied.one("RateLimit-Policy"))
        self.assertGreaterEqual(self.denied_in_metrics() - before, 1)

    def denied_in_metrics(self):
        lines = curl(self.sluice.url("/metrics", "admin")).body.splitlines()
        counted = [line for line in lines if '"ArticleCreate"' in line and "denied" in line and "shadow" not in line]
        return sum(float(line.rsplit(" ", 1)[1]) for line in counted)

    def test_thirty_one_curls_in_parallel(self):
        for n in range(TRIES):
            statuses, elapsed = self.curl_in_parallel(f"parallel-{n}")
            if elapsed < ONE_TOKEN:
                self.assertEqual((statuses.count("200"), statuses.count("429")), (30, 1), statuses)
                return
            # Slower than the refill: then more than thirty may pass, but never more than came back meanwhile.
            self.assertLessEqual(statuses.count("200"), 30 + elapsed / ONE_TOKEN)

    def curl_in_parallel(self, user):
        data = f'{{"domain":"shop","descriptors":[{{"user":"{user}"}}]}}'
        command = [curl_support.BINARY, "--silent", "--parallel", "--parallel-max", "31", "--data", data]
        for _ in range(31):
            command += ["--output", "/dev/null", self.sluice.url("/v1/check")]
        start = time.monotonic()
        run = subprocess.run([*command, "--write-out", "%{http_code}\n"], capture_output=True, text=True, check=True)
        return run.stdout.split(), time.monotonic() - start


class OnMemory(ThirtyOneAtOnce, unittest.TestCase):
    source = "memory"

    @classmethod
    def setUpClass(cls):
        cls.sluice = cls.enterClassContext(Sluice(POLICY))


@unittest.skipUnless(redis_support.BINARY, "no redis-server")
class OnRedis(ThirtyOneAtOnce, unittest.TestCase):
    source = "redis"

    @classmethod
    def setUpClass(cls):
        cls.redis = cls.enterClassContext(Redis())
        # A generous time-out: on a busy machine Redis itself may be late, and a fallback would hide that it answered.
        flags = ["--store.redis.url", cls.redis.url, "--store.redis.timeout", "5s"]
        cls.sluice = cls.enterClassContext(Sluice(POLICY, *flags))
        cls.other = cls.enterClassContext(Sluice(POLICY, *flags))

    def test_two_daemons_share_the_limit(self):
        for n in range(TRIES):
            start = time.monotonic()
            first, _ = post_at_once(self.sluice.ports["http"], "/v1/check", [body(f"shared-{n}")] * 16)
            second, _ = post_at_once(self.other.ports["http"], "/v1/check", [body(f"shared-{n}")] * 15)
            if time.monotonic() - start < ONE_TOKEN:
                self.assertEqual([answer.status for answer in first + second], [200] * 30 + [429])
                return
        self.fail(f"31 requests took more than {ONE_TOKEN} s, {TRIES} times")

    def test_a_restart_of_the_daemon_keeps_the_counters(self):
        one = {"domain": "d", "descriptors": [{"k": "kept"}]}
        text = "{domain: d, descriptors: [{key: k, rate_limit: {unit: hour, requests_per_unit: 10, burst: 3, algorithm: token_bucket}}]}"
        with Sluice(text, "--store.redis.url", self.redis.url, "--store.redis.timeout", "5s") as sluice:
            self.assertEqual(curl(sluice.url("/v1/check"), data=one).json["remaining"], 2)
            sluice.terminate()
            sluice.run()
            self.assertEqual(curl(sluice.url("/v1/check"), data=one).json["remaining"], 1)


if __name__ == "__main__":
    unittest.main()
