"""The Redis protocol: Sluice beside redis-server, a floor, and those who limit by it."""

import shutil
from pathlib import Path

from .compare import ratios
from .report import Goal
from .server import Server

OURS, REDIS, FLOOR = "sluice", "redis-server, PING", "bare epoll, hash map"
CELL, CRAB = "redis-cell 0.2.2", "throttlecrab 0.4.40, TCP_NODELAY"

# A limit that is never reached, as it lets a million through an hour and key; and no key is ever full again meanwhile, so
# that none can be forgotten.
THROTTLE = ["user:__rand_int__", "1000000", "1000000", "3600"]

# What redis-cell of today reached of redis-server's PING on a quiet machine of two cores, -P 16 and 64: its package is of
# 2017, and none is newer.
CELL_OF_PING = {16: 322 / 1320, 64: 321 / 2760}

CRAB_OPTIONS = ["--store", "adaptive", "--log-level", "error"]
REDIS_OPTIONS = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--logfile", "/dev/null"]


class RespPeers:
    """Starts the servers of one comparison. `root`: of the repository; `programs`: as in bench/run."""

    def __init__(self, root, programs):
        self.programs = programs
        self.driver = root / "bench/load/resp_load"
        self.peers = root / "build/peers"
        self.nodelay = programs.bench / "nodelay.so"
        self.commands = {}  # by the port of the server

    def _start(self, name, command, asked, env=None):
        server = Server(name, command, env)
        self.commands[server.port] = asked
        return server

    def _redis(self, name, asked, *more):
        return self._start(name, lambda port: ["redis-server", "--port", str(port), *REDIS_OPTIONS, *more], asked)

    def _crab(self):
        def command(port):
            return [self.peers / "throttlecrab", "--redis", "--redis-host", "127.0.0.1", "--redis-port", str(port), *CRAB_OPTIONS]

        # Its limit is max_burst, not one more.
        return self._start(CRAB, command, ["THROTTLE", THROTTLE[0], "1000001", *THROTTLE[2:]], {"LD_PRELOAD": str(self.nodelay)})

    def starters(self, skip):
        """`skip` is told what cannot be had here, and why."""
        programs = self.programs
        starters = [
            lambda: self._start(OURS, programs.serve("resp"), ["CL.THROTTLE", *THROTTLE]),
            lambda: self._redis(REDIS, ["PING"]),
            lambda: self._start(FLOOR, lambda port: [programs.floors / "respsrv", str(port)], ["CL.THROTTLE", *THROTTLE]),
        ]
        module = self.peers / "redis_cell.so"
        if module.exists():
            starters.append(lambda: self._redis(CELL, ["CL.THROTTLE", *THROTTLE], "--loadmodule", str(module)))
        else:
            skip(CELL, "tools/peers redis_cell says why")
        if not self.nodelay.exists():
            skip(CRAB, "no nodelay.so: without it every pipeline waits for delayed acknowledgements")
        elif (self.peers / "throttlecrab").exists():
            starters.append(self._crab)
        else:
            skip(CRAB, "tools/peers throttlecrab says why")
        return starters

    def load(self, pipeline):
        return lambda port, seconds: [self.driver, str(port), str(pipeline), str(seconds), *self.commands[port]]


def missing():
    """Why nothing can be measured here; None: it can."""
    absent = [name for name in ("redis-server", "redis-benchmark") if not shutil.which(name)]
    return f"no {' and no '.join(absent)}" if absent else None


def throughput(series, name):
    """How much of another's throughput ours is, round by round."""
    rates = [[sample.calls / sample.seconds for sample in series[one].samples] for one in (OURS, name)]
    return [ours / its for ours, its in zip(*rates)]


def goals(series, pipeline, of_ping):
    """`of_ping`: what ours is to reach of redis-server's PING."""
    found = [
        Goal(f"throughput, -P {pipeline}", REDIS, throughput(series, REDIS), at_least=of_ping),
        Goal(f"CPU, -P {pipeline}", FLOOR, ratios(series[OURS], series[FLOOR]), 1.3),
    ]
    # One at a time, all wait for the kernel, and none is twice as fast as another.
    if pipeline == 1:
        return found
    if CELL in series:
        found.append(Goal(f"throughput, -P {pipeline}", CELL, throughput(series, CELL), at_least=2))
    share = CELL_OF_PING[pipeline]
    by_ping = [ratio / share for ratio in throughput(series, REDIS)]
    found.append(Goal(f"throughput, -P {pipeline}", f"redis-cell, {share:.2f} of PING", by_ping, at_least=2))
    if CRAB in series and pipeline == 16:
        found.append(Goal(f"throughput, -P {pipeline}", CRAB, throughput(series, CRAB), at_least=4))
    return found
