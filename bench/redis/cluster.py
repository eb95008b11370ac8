"""A cluster of three masters under measurement, beside a standalone server: what it costs that calls have keys of one slot."""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness.report import Goal  # noqa: E402
from harness.server import Server, free_port  # noqa: E402

SCRIPT = HERE / "plain_bucket.lua"
KEYS = "100000"
# Of several groups some masters have more than others, so that those that have to wait for work send what they have: calls fill where
# there is one. So many groups, and checks in flight.
GROUPS = [("1", "1024"), ("12", "8192")]
PLAIN = "plain script, redis-benchmark --cluster -P 64"
RANDOM64 = "cluster, random keys, 64 in flight"
RANDOM = "cluster, random keys, 1024 in flight"
HOT = "cluster, one hot key, 1024 in flight"
GROUPED = [f"cluster, groups: {groups}, random keys, {in_flight} in flight" for groups, in_flight in GROUPS]
ALONE_RANDOM = "standalone, random keys, 1024 in flight"
ALONE_HOT = "standalone, one hot key, 1024 in flight"


def cli(port, *words):
    command = ["redis-cli", "-p", str(port), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Cluster:
    """Three masters and no replicas."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="sluice-bench-cluster-"))
        self.servers = []
        try:
            for number in range(3):
                folder = self.folder / str(number)
                folder.mkdir()
                # The bus gets a port of its own, as the usual one, 10000 above, may not exist.
                bus = free_port()
                self.servers.append(Server(
                    "redis-server",
                    lambda port, folder=folder, bus=bus: [
                        "redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--logfile",
                        "/dev/null", "--dir", str(folder), "--cluster-enabled", "yes", "--cluster-port", str(bus)],
                ))  # fmt: skip
            self.ports = [server.port for server in self.servers]
            nodes = [f"127.0.0.1:{port}" for port in self.ports]
            cli(self.ports[0], "--cluster", "create", *nodes, "--cluster-yes")
            self.url = "redis+cluster://" + ",".join(nodes)
            self._wait_until_whole()
        except BaseException:
            self.stop()
            raise

    def _wait_until_whole(self):
        end = time.monotonic() + 20
        while not all("cluster_state:ok" in cli(port, "CLUSTER", "INFO") for port in self.ports):
            if time.monotonic() > end:
                raise RuntimeError("the cluster does not become whole")
            time.sleep(0.05)

    def flush(self):
        for port in self.ports:
            cli(port, "FLUSHALL")

    def used_cpu(self):
        return sum(server.cpu_seconds() for server in self.servers)

    def stop(self):
        for server in self.servers:
            server.stop()
        shutil.rmtree(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()


def plain(cluster, warm, seconds):
    for port in cluster.ports:
        sha = cli(port, "SCRIPT", "LOAD", SCRIPT.read_text(encoding="utf-8"))

    def drive(requests):
        command = ["redis-benchmark", "--cluster", "-p", str(cluster.ports[0]), "-P", "64", "-r", KEYS, "-n",
                   str(requests), "--csv", "EVALSHA", sha, "1", "plain:{tag}:user-__rand_int__", "10", "100",
                   "1"]  # fmt: skip
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return float(out.splitlines()[-1].rsplit('",', 7)[1].strip('"'))

    drive(int(100000 * warm))
    before = cluster.used_cpu()
    requests = int(100000 * seconds)
    per_second = drive(requests)
    used = (cluster.used_cpu() - before) * 1e6 / requests
    return {"decisions": requests, "per_second": per_second, "redis_us": used, "failures": 0}


def measure(cluster, alone, drive, warm, seconds, note):
    """One round. `drive` runs the driver with these words; `note` takes a name and a sample."""
    cluster.flush()
    note(PLAIN, plain(cluster, warm, seconds))
    loads = [
        (RANDOM64, cluster.url, KEYS, "64"),
        (RANDOM, cluster.url, KEYS, "1024"),
        (HOT, cluster.url, "1", "1024"),
        *[(name, cluster.url, KEYS, in_flight, groups) for name, (groups, in_flight) in zip(GROUPED, GROUPS)],
        (ALONE_RANDOM, alone.url, KEYS, "1024"),
        (ALONE_HOT, alone.url, "1", "1024"),
    ]
    for name, url, keys, in_flight, *groups in loads:
        cluster.flush()
        alone.cli("FLUSHALL")
        note(name, drive("closed", url, keys, in_flight, str(warm), str(seconds), *groups)[0])


def goals(found):
    def ratio(work, name, against, at_most):
        ratios = [a["redis_us"] / b["redis_us"] for a, b in zip(found[name], found[against])]
        return Goal(work=work, against=against, ratios=ratios, at_most=at_most)

    return [
        ratio("Redis CPU, cluster, random keys, 1024", RANDOM, PLAIN, 0.9),
        ratio("Redis CPU, cluster, one hot key", HOT, ALONE_HOT, 1.15),
        ratio("Redis CPU, cluster, a group, full batches", GROUPED[0], ALONE_RANDOM, 1.15),
    ]
