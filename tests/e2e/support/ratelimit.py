"""The real envoyproxy/ratelimit, and Sluice in its place: both by the same environment."""

import os
import re
from pathlib import Path

from .daemon import BINARY as SLUICE
from .daemon import ROOT
from .program import Program, can_connect, free_port

BINARY = os.environ.get("RATELIMIT_BINARY", str(ROOT / "build/peers/ratelimit"))


def environment(redis, files, **more):
    """What both are told: their policy is all files of `files`/config."""
    return {
        "HOST": "127.0.0.1",
        "GRPC_HOST": "127.0.0.1",
        "DEBUG_HOST": "127.0.0.1",
        "REDIS_SOCKET_TYPE": "tcp",
        "REDIS_URL": f"127.0.0.1:{redis.port}",
        "REDIS_TIMEOUT": "10s",  # machines that run tests are busy
        "RUNTIME_ROOT": str(Path(files).parent),
        "RUNTIME_SUBDIRECTORY": Path(files).name,
        "RUNTIME_APPDIRECTORY": "config",
        "USE_STATSD": "false",
        "LOG_LEVEL": "info",
        **more,
    }


class Peer(Program):
    """Ports: grpc (a socket instead, with GRPC_UDS), http, debug, and metrics with USE_PROMETHEUS."""

    def __init__(self, name, command, variables):
        super().__init__(name)
        self.ports = {listener: free_port() for listener in ("grpc", "http", "debug", "metrics")}
        self.socket = variables.get("GRPC_UDS")
        ports = {
            "PORT": str(self.ports["http"]),
            "GRPC_PORT": str(self.ports["grpc"]),
            "DEBUG_PORT": str(self.ports["debug"]),
            "PROMETHEUS_ADDR": f"127.0.0.1:{self.ports['metrics']}",
        }
        try:
            self.start(command, {**variables, **ports})
            needed = {"http", "debug"}
            needed |= {"metrics"} if variables.get("USE_PROMETHEUS") == "true" else set()
            needed |= {"grpc"} if self.socket is None else set()
            self.wait_for(lambda: all(can_connect(self.ports[one]) for one in needed), "listening")
            if self.socket is not None:
                self.wait_for(lambda: os.path.exists(self.socket), "the socket")
        except BaseException:
            self.stop()
            raise

    @property
    def grpc(self):
        return f"unix:{self.socket}" if self.socket is not None else f"127.0.0.1:{self.ports['grpc']}"

    def url(self, path, listener="http"):
        return f"http://127.0.0.1:{self.ports[listener]}{path}"


def original(variables):
    return Peer("ratelimit", [BINARY], variables)


def replacement(variables):
    return Peer("sluice", [SLUICE, "serve", "--compat", "envoyproxy"], variables)


def series(page, prefix="ratelimit_service_rate_limit_"):
    """The samples of a Prometheus page whose names begin so, those that are 0 left out."""
    found = {}
    for name, labels, value in re.findall(rf"^({prefix}\w+)(?:\{{(.*)\}})? (\S+)$", page, re.MULTILINE):
        key = (name, tuple(sorted(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels))))
        if float(value) != 0:
            found[key] = float(value)
    return found
