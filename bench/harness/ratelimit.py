"""envoyproxy/ratelimit and Sluice in its place, each with a Redis of its own whose CPU is counted, too."""

import os
import re
import tempfile
import urllib.request
from pathlib import Path

from .server import Server, free_port

POLICY = "domain: bench\ndescriptors:\n  - key: user\n    rate_limit: { unit: hour, requests_per_unit: 4000000000 }\n"


class OnRedis(Server):
    """`command` gives the arguments; where to listen and what to limit is said by the environment, as is `more`."""

    def __init__(self, name, command, more=None):
        self.redis = Server(
            "redis-server",
            lambda port: ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--logfile", "/dev/null"],
        )
        self.folder = tempfile.TemporaryDirectory(prefix="sluice-bench-ratelimit-")
        files = Path(self.folder.name) / "current" / "ratelimit" / "config"
        files.mkdir(parents=True)
        (files / "bench.yaml").write_text(POLICY, encoding="utf-8")
        self.redis_marks = []
        self.debug_port = free_port()
        self.more = more or {}
        try:
            super().__init__(name, lambda port: ["env", *self.variables(port), *map(str, command)])
        except BaseException:
            self.redis.stop()
            raise

    def variables(self, port):
        values = {
            "GRPC_HOST": "127.0.0.1",
            "GRPC_PORT": port,
            "HOST": "127.0.0.1",
            "DEBUG_HOST": "127.0.0.1",
            "PORT": free_port(),
            "DEBUG_PORT": self.debug_port,
            "RUNTIME_ROOT": f"{self.folder.name}/current",
            "RUNTIME_SUBDIRECTORY": "ratelimit",
            # Without a server for them the original writes a line about each call.
            "DISABLE_STATS": "true",
            "USE_STATSD": "false",
            "REDIS_SOCKET_TYPE": "tcp",
            "REDIS_URL": f"127.0.0.1:{self.redis.port}",
            "REDIS_TIMEOUT": "10s",
            "LOG_LEVEL": "error",
            **self.more,
        }
        return [f"{name}={value}" for name, value in values.items()]

    def cpu_seconds(self):
        """Asked before and after each round: so is Redis."""
        self.redis_marks.append(self.redis.cpu_seconds())
        return super().cpu_seconds()

    def redis_us(self, samples):
        """CPU of Redis per call in µs, of each sample."""
        marks = self.redis_marks[2:]  # the first pair is the warm-up's
        spent = [after - before for before, after in zip(marks[::2], marks[1::2])]
        return [cpu / sample.calls * 1e6 for cpu, sample in zip(spent, samples)]

    def check(self):
        """The original answers by an error when Redis does not; Sluice decides by itself, which would be no comparison."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.debug_port}/stats", timeout=10) as page:
            failed = re.search(r"should_rate_limit\.redis_error: ([1-9]\d*)", page.read().decode())
        if failed:
            raise RuntimeError(f"{self.name}: Redis did not answer {failed.group(1)} calls")

    def stop(self):
        if hasattr(self, "process"):
            super().stop()
        self.redis.stop()
        self.folder.cleanup()


def binary(root):
    return os.environ.get("RATELIMIT_BINARY", str(root / "build/peers/ratelimit"))
