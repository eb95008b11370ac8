"""The daemon on two Redis servers behind Envoy's redis_proxy (proxy: true): keys of a request lie together."""

import http.client
import json
import re
import unittest

from support.curl import curl
from support.daemon import Sluice
from support.envoy import RedisProxy
from support.program import wait_until
from support.redis import Redis

POLICY = """
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: day, requests_per_unit: 10, algorithm: token_bucket }
    descriptors:
      - key: path
        rate_limit: { period: 1d, requests_per_unit: 10, algorithm: sliding_log }
"""
CLIENTS = 1000
# What scripts call, which no proxy sees, and this test's own.
WITHIN = {"time", "get", "set", "setrange", "del", "pexpire", "zadd", "zrange", "zrangebyscore", "zcard", "zrank"}
OWN = {"config|resetstat", "ping"}


class BehindEnvoy(unittest.TestCase):
    def run_in_style(self, style):
        servers = [self.enterContext(Redis()), self.enterContext(Redis())]
        proxy = self.enterContext(RedisProxy(servers))
        for server in servers:
            server.ask("CONFIG RESETSTAT")
        flags = ["--store.redis.url", proxy.url, "--store.redis.timeout", "10s", "--store.redis.proxy", "true"]
        sluice = self.enterContext(Sluice(POLICY, *flags, "--store.redis.script_style", style))

        def warm():
            return curl(
                sluice.url("/v1/check"), data={"domain": "shop", "descriptors": [{"entries": {"user": "warm"}, "cost": 0}]}
            ).json["source"]

        wait_until(lambda: all(warm() == "redis" for _ in range(10)), "on Redis")
        connection = http.client.HTTPConnection("127.0.0.1", sluice.ports["http"], timeout=60)
        self.addCleanup(connection.close)

        def check(*users):
            descriptors = [{"entries": {"user": user, **more}, "cost": 4} for user in users for more in ({}, {"path": "/"})]
            connection.request("POST", "/v1/check", json.dumps({"domain": "shop", "descriptors": descriptors}))
            answer = connection.getresponse()
            body = json.loads(answer.read())
            self.assertEqual(body["source"], "redis", body)
            return answer.status

        users = [f"client{n}" for n in range(CLIENTS)]
        for user in users:
            self.assertEqual(check(user), 200)
        for pair in range(0, 100, 2):
            self.assertEqual(check(*users[pair : pair + 2]), 200)
            self.assertEqual(check(*users[pair : pair + 2]), 429)

        names = set()
        for server in servers:
            with_answer = server.ask("INFO commandstats").decode()
            names |= set(re.findall(r"cmdstat_([^:]+):", with_answer))
        self.assertLessEqual({"eval", "evalsha"}, names)
        self.assertEqual(names - WITHIN - OWN - {"eval", "evalsha"}, set(), "of these a proxy knows not all")

        questions = [f"EXISTS sluice:{{{user}}}shop/user;tb sluice:{{{user}}}shop/user/path;sl|/" for user in users]
        there = [server.ask_all(questions) for server in servers]
        for user, counts in zip(users, zip(*there, strict=True), strict=True):
            self.assertEqual(sorted(counts), [0, 2], user)
        for counts in there:
            self.assertGreater(sum(counts), 400)
        self.assertEqual(sum(server.ask_all(["DBSIZE"])[0] for server in servers), 2 * CLIENTS)

    def test_each_request_at_one_server(self):
        self.run_in_style("fast")

    def test_each_request_at_one_server_in_literal_style(self):
        self.run_in_style("literal")


if __name__ == "__main__":
    unittest.main()
