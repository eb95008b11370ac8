"""Runs the commands that pages show, against daemons started as the pages start them, and compares what they say.

A block is of commands when its lines begin with a program, or with `$ `, and then what they say stands among them. A block
without a language or of `text` that follows in the same section is what the commands before it say. `…` stands for
anything, and any number for any other: figures depend on the moment. Ports give way to free ones."""
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import time
import urllib.request

from pages import FENCE, free_ports

PORTS = ("8080", "8081", "8379", "6380", "6070", "6379")
PROGRAMS = ("sluice", "build/release/sluice", "curl", "redis-cli", "grpcurl", "envoy", "docker", "cmake", "apt-get", "tools/", "(cd",
            "examples/", "bench/")
ASSIGNMENT = re.compile(r"^[A-Z_]+=\S+ ")
NUMBER = re.compile(r"\d+(\.\d+)?(ns|us|µs|ms|s)?\b")

SHOP = """domain: shop
descriptors:
  - key: user
    rate_limit: { name: ArticleCreate, unit: second, requests_per_unit: 10, algorithm: token_bucket, burst: 30 }
"""
EXPORTS = """domain: exports
leases: true
descriptors:
  - key: tenant
    rate_limit: { name: Exports, algorithm: concurrency, requests_per_unit: 3, ttl: 60s }
"""
DIMENSIONS = """domain: api
descriptors:
  - key: tenant
    descriptors: [{ key: path, rate_limit: { unit: second, requests_per_unit: 100 } }]
  - key: remote_address
    rate_limit: { unit: second, requests_per_unit: 50 }
"""
LOGIN = """domain: app
descriptors:
  - key: login
    rate_limit: { algorithm: fixed_window, period: 60s, requests_per_unit: 100, align: first_hit }
"""
# What a page takes for given: files, a daemon, commands run before its own; and commands of which only the end counts.
GIVEN = {
    "README.md": {},
    "docs/http-api.md": {"files": {"policies/shop.yaml": SHOP, "policies/exports.yaml": EXPORTS},
                         "before": ["sluice serve --policy policies --http.throttle 200"]},
    "docs/cli.md": {"files": {"policies/shop.yaml": SHOP, "shop.yaml": SHOP, "sluice.yaml": "policy: [shop.yaml]\nstore: { redis: { url: redis://127.0.0.1:6379 } }\n"},
                    "environment": {"SLUICE_STORE_REDIS_URL": "redis://127.0.0.1:6379", "RUNTIME_ROOT": "runtime"},
                    "touch": {"keys": "curl localhost:8080/v1/check -d '{\"domain\": \"shop\", \"descriptors\": [{\"user\": \"42\"}], \"cost\": 30}'"}},
    "docs/policy.md": {"files": {"policy.yaml": DIMENSIONS}},
    "docs/migration/go-zero.md": {"files": {"policy.yaml": LOGIN}, "before": ["sluice serve --policy policy.yaml"]},
    "docs/observability.md": {"files": {"policies/shop.yaml": SHOP}},
    "docs/resp.md": {},
    "docs/migration/redis-cell.md": {},
    "docs/migration/throttlecrab.md": {},
    "docs/bench.md": {"before": ["sluice serve --policy examples/policies/article.yaml"]},
}
# Run by other tests, which have what they need.
ELSEWHERE = {
    "tools/": "by whoever builds, and CI",
    "docker": "tests/package/image runs the Dockerfile's steps",
    "cmake": "tests/package/run",
    "(cd": "tests/package/run",
    "apt-get": "tests/package/run",
    "envoy": "tests/e2e/run envoy",
    "grpcurl": "tests/e2e/run go_client",
    "sluice serve --compat envoyproxy": "tests/e2e/run envoyproxy",
    "sluice serve --config sluice.yaml --listen.http 0.0.0.0": "it would listen beyond this machine",
    "examples/shared_limit/run": "takes five daemons and 20 s",
    "bench/": "benchmarks",
    "sluice drain": "tests/integration, with brokers",
    "sluice serve --policy examples/envoy/policy.yaml": "tests/e2e/run envoy",
    "curl -i -H 'x-api-key: me'": "tests/e2e/run envoy",
}


def run_elsewhere(command):
    return any(command.replace("build/release/", "").startswith(begin) for begin in ELSEWHERE)


def commands_of(body):
    """[(command, what it says or None)], or None: not commands."""
    prompted = body.startswith("$ ")
    found, lines = [], body.splitlines()
    while lines:
        line = lines.pop(0)
        if prompted and not line.startswith("$ "):
            found[-1][1].append(line)
            continue
        command = line.removeprefix("$ ")
        while lines and (command.endswith("\\") or is_open(command)):
            command += "\n" + lines.pop(0)
        if not (command.startswith(PROGRAMS) or ASSIGNMENT.match(command)):
            return None
        found.append((command, []))
    return [(command, "\n".join(said) or None) for command, said in found]


def is_open(command):
    try:
        shlex.split(command)
        return False
    except ValueError:
        return True


def shape(text):
    """A pattern for what says the same with other figures."""
    numbered = NUMBER.sub("0", text.strip())
    return re.compile(".*".join(re.escape(part) for part in numbered.split("…")).replace("0", r"\d+"), re.DOTALL)


def says(expected, got):
    got = NUMBER.sub("0", got.strip())
    # Of a head, the fields may come in any order, and more of them.
    if expected.startswith("HTTP/"):
        head, _, body = expected.partition("\n\n")
        got_head, _, got_body = got.replace("\r", "").partition("\n\n")
        wanted = [line for line in head.splitlines() if line != "…" and not line.startswith("Date:")]
        return all(any(shape(line).fullmatch(one) for one in got_head.splitlines()) for line in wanted) and says(body, got_body)
    return shape(expected).fullmatch(got) is not None


def behind_a_burst(command):
    """The same request behind forty of its kind over one connection: a burst comes back while a busy machine starts programs."""
    found = re.fullmatch(r"curl ([^|;>]*?)(\S*localhost:\S+)([^|;>]*)", command, re.DOTALL)
    if not found:
        return command
    before, url, after = found.groups()
    return f"curl -s -o /dev/null {before}'{url}#[1-40]'{after} --next {before}{url}{after}"


class Page:
    def __init__(self, root, name, program, folder):
        self.root, self.name, self.program, self.folder = root, name, program, pathlib.Path(folder)
        self.given = GIVEN[name]
        self.ports = dict(zip(PORTS, free_ports(len(PORTS))))
        self.daemon = self.redis = None
        self.heard = ""
        self.ran, self.problems = 0, []
        for file, text in self.given.get("files", {}).items():
            self.write(file, text)
        (self.folder / "examples").symlink_to(root / "examples")
        (self.folder / "bin").mkdir()
        (self.folder / "bin/sluice").symlink_to(program)
        self.environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "LC_ALL": "C.UTF-8",
                            "FAKETTY": "1"}  # redis-cli writes for people
        for setting, text in self.given.get("environment", {}).items():
            self.environment[setting] = self.here(text)

    def write(self, file, text):
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.here(text))

    def here(self, text):
        text = re.sub(r"\b(" + "|".join(PORTS) + r")\b", lambda port: self.ports[port[0]], text)
        text = text.replace("build/release/sluice", "sluice").replace("localhost:", "127.0.0.1:")
        text = re.sub(r"--duration \d+s", "--duration 1s", text)
        if text.startswith("sluice bench") and "--target" not in text:
            text += f" --target grpc://127.0.0.1:{self.ports['8081']}"
        # What an earlier answer said, of which the page shows the beginning.
        for part in re.findall(r"([\w-]{8,})…", text):
            whole = re.findall(re.escape(part) + r"[\w-]+", self.heard)
            if whole:
                text = text.replace(part + "…", whole[-1])
        return text

    def serve(self, command):
        if self.daemon:
            self.stop(self.daemon)
        listen = {"grpc": "8081", "http": "8080", "admin": "6070"}
        flags = [f"--listen.{name}=127.0.0.1:{self.ports[port]}" for name, port in listen.items() if f"--listen.{name}" not in command]
        log = open(self.folder / "daemon.log", "w", encoding="utf-8")
        self.daemon = subprocess.Popen(["bash", "-c", f"exec {self.here(command)} {' '.join(flags)}" if not ASSIGNMENT.match(command)
                                        else f"{self.here(command)} {' '.join(flags)}"],
                                       cwd=self.folder, env=self.environment, stdout=log, stderr=log, start_new_session=True)
        until = time.monotonic() + 20
        while time.monotonic() < until and self.daemon.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.ports['8080']}/", timeout=1)
            except urllib.error.HTTPError:
                return None
            except OSError:
                time.sleep(0.02)
        return (self.folder / "daemon.log").read_text()

    def need_redis(self):
        if self.redis:
            return
        log = open(self.folder / "redis.log", "w", encoding="utf-8")
        self.redis = subprocess.Popen(["redis-server", "--port", self.ports["6379"], "--save", "", "--bind", "127.0.0.1"],
                                      cwd=self.folder, stdout=log, stderr=log, start_new_session=True)
        until = time.monotonic() + 20
        while time.monotonic() < until and "Ready to accept" not in (self.folder / "redis.log").read_text():
            time.sleep(0.02)

    def run(self, command):
        done = subprocess.run(["bash", "-c", self.here(command)], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              timeout=60, stdin=subprocess.DEVNULL)
        self.heard += done.stdout
        return done

    def touch(self, command):
        """Makes what the command is about, which may have gone since it was last tried."""
        for word, touch in self.given.get("touch", {}).items():
            if word in command:
                self.run(touch)

    def check(self, commands, expected):
        """All of them, and what they say together; where it is not that, again: a burst is used up, or comes back."""
        said = ""
        for command in commands:
            said = ""
            tries = 100 if expected and command == commands[-1] else 1
            for number in range(tries):
                self.touch(command)
                done = self.run(behind_a_burst(command) if 10 <= number < 60 else command)
                if done.returncode != 0 and "echo $?" not in command:
                    self.problems.append(f"{self.name}: `{command}` ends with {done.returncode}: {done.stderr}{done.stdout}")
                    return
                said = done.stdout
                if not expected or says(expected if len(commands) == 1 else expected.splitlines()[-1], said):
                    break
                if number >= 60:
                    time.sleep(0.1)
        if expected and not says(expected if len(commands) == 1 else expected.splitlines()[-1], said):
            self.problems.append(f"{self.name}: `{commands[-1]}` says\n{said}and not\n{expected}")

    def block(self, commands, expected):
        pending = []
        for command, said in commands:
            if run_elsewhere(command):
                continue
            if "redis://" in command or any("redis://" in text for text in self.given.get("environment", {}).values()):
                self.need_redis()
            self.ran += 1
            if " serve" in command.split(" -")[0]:
                problem = self.serve(command)
                if problem is not None:
                    self.problems.append(f"{self.name}: `{command}` does not serve: {problem}")
                continue
            if said is not None:
                self.check([command], said)
            else:
                pending.append(command)
        if pending:
            self.check(pending, expected)

    def go_through(self):
        for command in self.given.get("before", []):
            problem = self.serve(command)
            if problem is not None:
                self.problems.append(f"{self.name}: `{command}` does not serve: {problem}")
        text = (self.root / self.name).read_text()
        blocks = [(block.group(1), block.group(2), len(re.findall(r"^#+ ", text[:block.start()], re.MULTILINE))) for block in FENCE.finditer(text)]
        for at, (kind, body, section) in enumerate(blocks):
            commands = commands_of(body) if kind in ("", "sh") else None
            if commands is None:
                continue
            following = blocks[at + 1] if at + 1 < len(blocks) else None
            expected = None
            if following and following[0] in ("", "text") and following[2] == section and commands_of(following[1]) is None:
                expected = following[1]
            self.block(commands, expected)

    def stop(self, process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()

    def close(self):
        for process in (self.daemon, self.redis):
            if process:
                self.stop(process)


def nobody_runs(root, name):
    """Commands of a page that is not gone through, and that no other test has."""
    blocks = [commands_of(block.group(2)) for block in FENCE.finditer((root / name).read_text()) if block.group(1) in ("", "sh")]
    return [f"{name}: nobody runs `{command}`" for commands in blocks for command, _ in commands or [] if not run_elsewhere(command)]


def missing():
    return [name for name in ("curl", "redis-server", "redis-cli") if not shutil.which(name)]


def run_commands(root, name, program, folder):
    """(number of commands run, what differs)"""
    page = Page(root, name, program, folder)
    try:
        page.go_through()
    finally:
        page.close()
    if page.ran == 0:
        page.problems.append(f"{name}: no command was found in it")
    return page.ran, page.problems
