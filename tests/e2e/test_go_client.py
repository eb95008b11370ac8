"""grpc-go with go-control-plane, and go-redis, as clients: runs the Go tests in goclient/ against the daemon."""

import os
import shutil
import subprocess
import unittest
from pathlib import Path

from support.certificates import Certificates
from support.daemon import Sluice
from support.policies import RATE_LIMIT_SERVICE

FOLDER = Path(__file__).resolve().parent / "goclient"


@unittest.skipUnless(shutil.which("go"), "no go")
class GoClient(unittest.TestCase):
    def test_the_main_path(self):
        with Sluice(RATE_LIMIT_SERVICE, "--listen.resp", "127.0.0.1:0", "--resp.password", "secret") as sluice:
            run = subprocess.run(
                ["go", "test", "-count=1", "-v", "./..."],
                cwd=FOLDER,
                env={**os.environ, "SLUICE_GRPC": sluice.grpc, "SLUICE_RESP": f"127.0.0.1:{sluice.ports['resp']}"},
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertNotIn("--- SKIP", run.stdout)
        self.assertGreaterEqual(run.stdout.count("--- PASS"), 9, run.stdout)

    @unittest.skipUnless(shutil.which("openssl"), "no openssl")
    def test_go_redis_over_tls(self):
        with Certificates() as certificates:
            flags = ["--listen.resp", "127.0.0.1:0", "--resp.password", "secret", *certificates.flags("resp")]
            with Sluice(RATE_LIMIT_SERVICE, *flags) as sluice:
                address = f"localhost:{sluice.ports['resp']}"
                run = subprocess.run(
                    ["go", "test", "-count=1", "-v", "-run", "GoRedis", "./..."],
                    cwd=FOLDER,
                    env={**os.environ, "SLUICE_RESP": address, "SLUICE_RESP_CA": certificates.ca},
                    capture_output=True,
                    text=True,
                    timeout=600,
                    check=False,
                )
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertNotIn("--- SKIP", run.stdout)
        self.assertGreaterEqual(run.stdout.count("--- PASS"), 2, run.stdout)


if __name__ == "__main__":
    unittest.main()
