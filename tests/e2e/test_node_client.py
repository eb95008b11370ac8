"""ioredis as a client: runs nodeclient/client.js against the daemon."""

import os
import subprocess
import unittest
from pathlib import Path

from support.daemon import ROOT, Sluice
from support.policies import RATE_LIMIT_SERVICE

SCRIPT = Path(__file__).resolve().parent / "nodeclient/client.js"
MODULES = ROOT / "build/e2e/node/node_modules"


class NodeClient(unittest.TestCase):
    def test_ioredis(self):
        with Sluice(RATE_LIMIT_SERVICE, "--listen.resp", "127.0.0.1:0", "--resp.password", "secret") as sluice:
            environment = {**os.environ, "NODE_PATH": str(MODULES), "SLUICE_RESP_PORT": str(sluice.ports["resp"])}
            run = subprocess.run(
                ["node", str(SCRIPT)], env=environment, capture_output=True, text=True, timeout=120, check=False
            )
        self.assertEqual((run.returncode, run.stdout), (0, "all right\n"), run.stderr)


if __name__ == "__main__":
    unittest.main()
