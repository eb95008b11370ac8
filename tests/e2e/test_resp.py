"""The Redis protocol by clients that people have: redis-cli, redis-benchmark, redis-py."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import redis

from support.curl import curl
from support.daemon import Sluice

POLICY = """
domain: shop
descriptors:
  - key: user
    rate_limit: { name: Daily, algorithm: token_bucket, period: 1d, requests_per_unit: 2 }
"""
DAY = 86400


class Clients(unittest.TestCase):
    def setUp(self):
        self.sluice = self.enterContext(Sluice(POLICY, "--listen.resp", "127.0.0.1:0", "--resp.password", "secret"))
        self.port = self.sluice.ports["resp"]

    def client(self, **options):
        return self.enterContext(redis.Redis(port=self.port, password="secret", decode_responses=True, **options))

    def cli(self, *words):
        command = ["redis-cli", "-p", str(self.port), "--no-auth-warning", "-a", "secret", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.split()

    def test_redis_py_in_both_protocols(self):
        for protocol in (2, 3):
            client = self.client(protocol=protocol, client_name="article-api")
            self.assertTrue(client.ping())
            key = f"py{protocol}"
            self.assertEqual(client.execute_command("CL.THROTTLE", key, 15, 30, 60), [0, 16, 15, -1, 2])
            self.assertEqual(client.execute_command("THROTTLE", key + "t", 1, 1, 3600), [1, 1, 0, 3600, 0])
            self.assertEqual(client.execute_command("THROTTLE", key + "t", 1, 1, 3600)[0], 0)
            self.assertEqual(client.execute_command("GCRA", key + "g", 3, 1, DAY, "TOKENS", 5), [1, 4, 4, -1, 0])
            decision, name = client.execute_command("SLUICE", "CHECK", "shop", 1, "user", key)
            self.assertEqual((decision[:3], name), ([0, 2, 1], "Daily"))
            self.assertEqual(client.execute_command("SLUICE", "RESET", "shop", "user", key), 1)
            with self.assertRaisesRegex(redis.ResponseError, "max_burst must be a whole number of 64 bits, is 'x'"):
                client.execute_command("CL.THROTTLE", key, "x", 30, 60)

    def test_a_pipeline_of_redis_py(self):
        pipeline = self.client().pipeline(transaction=False)
        for _ in range(1000):
            pipeline.execute_command("CL.THROTTLE", "piped", 9, 1, DAY)
        self.assertEqual(sum(reply[0] == 0 for reply in pipeline.execute()), 10)

    def test_a_transaction_of_redis_py(self):
        for protocol in (2, 3):
            transaction = self.client(protocol=protocol).pipeline(transaction=True)
            for _ in range(1000):
                transaction.execute_command("CL.THROTTLE", f"kept{protocol}", 9, 1, DAY)
            self.assertEqual(sum(reply[0] == 0 for reply in transaction.execute()), 10)
            transaction.execute_command("CL.THROTTLE", f"not-kept{protocol}", 9, 1, DAY)
            transaction.execute_command("EVAL", "return 1", 0)
            with self.assertRaisesRegex(redis.ResponseError, "there are no scripts here"):
                transaction.execute()
            # Nothing was charged.
            self.assertEqual(self.client().execute_command("PEEK", f"not-kept{protocol}", 9, 1, DAY)[2], 10)

    def test_another_database(self):
        with self.assertRaisesRegex(redis.ResponseError, "there is only database 0"):
            self.client(db=1).ping()

    def test_a_wrong_password(self):
        with self.assertRaises(redis.AuthenticationError):
            redis.Redis(port=self.port, password="wrong").ping()

    def test_a_token_is_asked_for_what_changes_counters(self):
        tokens = Path(self.enterContext(tempfile.TemporaryDirectory())) / "tokens"
        tokens.write_text("ops let-me-in\n", encoding="utf-8")
        flags = ["--listen.resp", "127.0.0.1:0", "--access.token_file", str(tokens)]
        port = self.enterContext(Sluice(POLICY, *flags)).ports["resp"]
        stranger = self.enterContext(redis.Redis(port=port, decode_responses=True))
        self.assertEqual(stranger.execute_command("CL.THROTTLE", "k", 15, 30, 60)[0], 0)
        with self.assertRaisesRegex(redis.AuthenticationError, "this command changes counters"):
            stranger.execute_command("SLUICE", "RESET", "shop", "user", "1")
        for login in ({"password": "let-me-in"}, {"username": "ops", "password": "let-me-in"}):
            operator = self.enterContext(redis.Redis(port=port, decode_responses=True, **login))
            self.assertEqual(operator.execute_command("SLUICE", "RESET", "shop", "user", "1"), 1)

    def test_redis_cli(self):
        self.assertEqual(self.cli("CL.THROTTLE", "cli", "3", "10", "60", "4"), ["0", "4", "0", "-1", "24"])
        self.assertEqual(self.cli("-3", "PEEK", "cli2", "3", "10", "60"), ["0", "4", "4", "-1", "0"])
        self.assertEqual(self.cli("RESET", "cli"), ["OK"])
        self.assertIn("redis_version:7.0.0", self.cli("INFO", "server"))
        self.assertNotIn("connected_slaves:0", self.cli("INFO", "server"))
        self.assertIn("TOKENS", self.cli("COMMAND", "DOCS", "gcra"))

    @unittest.skipUnless(shutil.which("redis-benchmark"), "no redis-benchmark")
    def test_redis_benchmark(self):
        requests = 100_000
        command = ["redis-benchmark", "-p", str(self.port), "-a", "secret", "-P", "16", "-n", str(requests), "-q"]
        subprocess.run([*command, "CL.THROTTLE", "hot", "99", "1", str(DAY)], capture_output=True, timeout=120, check=True)
        metrics = curl(self.sluice.url("/metrics", "admin")).body
        self.assertIn('sluice_throttle_decisions_total{verdict="allowed"} 100\n', metrics)
        self.assertIn(f'sluice_throttle_decisions_total{{verdict="denied"}} {requests - 100}\n', metrics)


if __name__ == "__main__":
    unittest.main()
