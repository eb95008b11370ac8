"""Real programs under test: started in a folder of their own, waited for, and never left behind."""

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

READY_WITHIN = 60.0  # seconds; generous, as machines that run tests are busy
# Whatever ends the tests ends the programs. By a program of its own, as a preexec_fn would fork a process with threads.
WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


RESERVED = {}  # ports of this process, until its end, each with a name that others see


def free_port():
    """A port that nobody uses and that no other test is given. Only for programs that cannot bind to port 0 themselves.

    Below those of outgoing connections, so that none of these takes it while its server is down. As the tests in C++ have it.
    """
    for port in random.sample(range(10_000, 20_000), 10_000):
        with socket.socket() as s:
            name = socket.socket(socket.AF_UNIX)
            try:
                s.bind(("127.0.0.1", port))
                with socket.socket() as bus:  # of a node of a Redis cluster
                    bus.bind(("127.0.0.1", port + 10_000))
                name.bind(f"\0sluice-test-port-{port}")
            except OSError:
                name.close()
                continue
        RESERVED[port] = name
        return port
    raise RuntimeError("no free port")


def can_connect(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def memory(pid):
    """Resident bytes of a process."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def pause(process):
    """Stops a child until SIGCONT; it does nothing more when this returns."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


def wait_until(condition, what, within=READY_WITHIN):
    """Asks `condition` every 20 ms; its first true value is the result."""
    end = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {within:g} s")
        time.sleep(0.02)


class Program:
    """A process with its log and a temporary folder. A context manager: leaving it stops the process."""

    def __init__(self, name):
        self.name = name
        self.folder = tempfile.mkdtemp(prefix=f"sluice-e2e-{name}-")
        self.log_path = os.path.join(self.folder, "log")
        self.process = None

    def start(self, command, env=None):
        clean = {key: value for key, value in os.environ.items() if not key.startswith("SLUICE_")}
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [*WITH_PARENT, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**clean, **(env or {})},
            )

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait_for(self, condition, what):
        """Like wait_until, but fails at once, with the log, when the process has ended."""

        def alive_and_ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n{self.log()}")
            return condition()

        try:
            return wait_until(alive_and_ready, f"{self.name}: {what}")
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.log()}") from None

    def terminate(self, within=20.0):
        """Asks the process to end and waits for it; answers its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(within)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process is not None:
            self.terminate()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()
