"""lettuce as a client: runs javaclient/Client.java against the daemon."""

import os
import shutil
import subprocess
import unittest
from pathlib import Path

from support.certificates import Certificates
from support.daemon import ROOT, Sluice
from support.policies import RATE_LIMIT_SERVICE

SOURCE = Path(__file__).resolve().parent / "javaclient/Client.java"
JARS = ROOT / "build/e2e/java"


class JavaClient(unittest.TestCase):
    def run_client(self, *flags, **variables):
        with Sluice(RATE_LIMIT_SERVICE, "--listen.resp", "127.0.0.1:0", "--resp.password", "secret", *flags) as sluice:
            environment = {**os.environ, "SLUICE_RESP_PORT": str(sluice.ports["resp"]), **variables}
            command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*", str(SOURCE)]
            run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((run.returncode, run.stdout), (0, "all right\n"), run.stderr)

    def test_lettuce(self):
        self.run_client()

    @unittest.skipUnless(shutil.which("openssl"), "no openssl")
    def test_lettuce_over_tls(self):
        with Certificates() as certificates:
            self.run_client(*certificates.flags("resp"), SLUICE_RESP_CA=certificates.ca)


if __name__ == "__main__":
    unittest.main()
