"""ioredis as a client: runs nodeclient/client.js against the daemon."""

import os
import shutil
import subprocess
import unittest
from pathlib import Path

from support.certificates import Certificates
from support.daemon import ROOT, Sluice
from support.policies import RATE_LIMIT_SERVICE

SCRIPT = Path(__file__).resolve().parent / "nodeclient/client.js"
MODULES = ROOT / "build/e2e/node/node_modules"


class NodeClient(unittest.TestCase):
    def run_client(self, *flags, **variables):
        with Sluice(RATE_LIMIT_SERVICE, "--listen.resp", "127.0.0.1:0", "--resp.password", "secret", *flags) as sluice:
            environment = {**os.environ, "NODE_PATH": str(MODULES), "SLUICE_RESP_PORT": str(sluice.ports["resp"]), **variables}
            run = subprocess.run(
                ["node", str(SCRIPT)], env=environment, capture_output=True, text=True, timeout=120, check=False
            )
        self.assertEqual((run.returncode, run.stdout), (0, "all right\n"), run.stderr)

    def test_ioredis(self):
        self.run_client()

    @unittest.skipUnless(shutil.which("openssl"), "no openssl")
    def test_ioredis_over_tls(self):
        with Certificates() as certificates:
            self.run_client(*certificates.flags("resp"), SLUICE_RESP_CA=certificates.ca)


if __name__ == "__main__":
    unittest.main()
