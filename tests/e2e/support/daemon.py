"""`sluice`: the daemon on ports of its own, and its other commands."""

import os
import re
import subprocess
from pathlib import Path

from .program import Program

ROOT = Path(__file__).resolve().parents[3]
BINARY = os.environ.get("SLUICE_BINARY", str(ROOT / "build/release/sluice"))


class Sluice(Program):
    """`sluice serve` on free ports. `policy`: the text of a policy file, or the path of one."""

    def __init__(self, policy, *flags, ports=None):
        super().__init__("sluice")
        if isinstance(policy, Path):
            self.policy_path = str(policy)
        else:
            self.policy_path = os.path.join(self.folder, "policy.yaml")
            Path(self.policy_path).write_text(policy, encoding="utf-8")
        self.flags = list(flags)
        self.ports = dict(ports or {})
        try:
            self.run()
        except BaseException:
            self.stop()
            raise

    def run(self):
        """Starts the daemon; again after terminate() or kill(), on the same ports."""
        command = [BINARY, "serve", "--policy", self.policy_path]
        for listener in ("grpc", "http", "admin"):
            command += [f"--listen.{listener}", f"127.0.0.1:{self.ports.get(listener, 0)}"]
        seen = len(self.log()) if os.path.exists(self.log_path) else 0
        self.start(command + self.flags)

        def listening():
            found = dict(re.findall(r"listening (\w+) \S*?:(\d+)\b", self.log()[seen:]))
            return found if {"grpc", "http", "admin"} <= found.keys() else None

        self.ports = {name: int(port) for name, port in self.wait_for(listening, "listening").items()}

    @property
    def grpc(self):
        return f"127.0.0.1:{self.ports['grpc']}"

    def url(self, path, listener="http"):
        return f"http://127.0.0.1:{self.ports[listener]}{path}"


def command(*arguments, timeout=60, env=None):
    """Runs `sluice ARGUMENTS` to its end, `env` beside its environment; answers a CompletedProcess with text."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("SLUICE_")}
    return subprocess.run(
        [BINARY, *map(str, arguments)], env={**clean, **(env or {})}, capture_output=True, text=True, timeout=timeout, check=False
    )
