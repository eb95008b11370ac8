"""Servers under measurement: started on a free port, asked for the CPU time they used, stopped."""

import ctypes
import os
import socket
import subprocess
import time

_libc = ctypes.CDLL(None)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A server process. `command` is called with the port and gives the argument list."""

    def __init__(self, name, command, env=None):
        self.name = name
        self.port = free_port()
        # Settings of the daemon in the caller's environment would change what is measured.
        clean = {key: value for key, value in os.environ.items() if not key.startswith("SLUICE_") and key != "TUNED"}
        self.process = subprocess.Popen(
            command(self.port),
            env={**clean, **(env or {})},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            self._wait_until_listening()
        except BaseException:
            self.stop()
            raise

    def _wait_until_listening(self):
        end = time.monotonic() + 10
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended at once: {self.process.stderr.read().strip()}")
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError(f"{self.name} does not listen on port {self.port}")

    def cpu_seconds(self):
        """User and system time of the process so far, threads that have ended included, to the nanosecond."""
        clock = ctypes.c_int()
        if _libc.clock_getcpuclockid(self.process.pid, ctypes.byref(clock)) != 0:
            raise RuntimeError(f"{self.name} has ended")
        return time.clock_gettime(clock.value)

    def check(self):
        """Asked at the end of a comparison: raises when something was not as its answers looked."""

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()
