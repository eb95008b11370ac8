"""grpc-go and go-control-plane as a client: runs the Go tests in goclient/ against the daemon."""

import os
import shutil
import subprocess
import unittest
from pathlib import Path

from support.daemon import Sluice
from support.policies import RATE_LIMIT_SERVICE

FOLDER = Path(__file__).resolve().parent / "goclient"


@unittest.skipUnless(shutil.which("go"), "no go")
class GoClient(unittest.TestCase):
    def test_the_main_path(self):
        with Sluice(RATE_LIMIT_SERVICE) as sluice:
            run = subprocess.run(
                ["go", "test", "-count=1", "-v", "./..."],
                cwd=FOLDER,
                env={**os.environ, "SLUICE_GRPC": sluice.grpc},
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertNotIn("--- SKIP", run.stdout)
        self.assertGreaterEqual(run.stdout.count("--- PASS"), 7, run.stdout)


if __name__ == "__main__":
    unittest.main()
