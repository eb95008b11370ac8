"""A real redis-server (or what REDIS_SERVER names), without persistence, on a port of its own."""

import os
import shutil
import signal
import socket

from .program import Program, free_port, pause

BINARY = os.environ.get("REDIS_SERVER") or shutil.which("redis-server")


class Redis(Program):
    def __init__(self):
        super().__init__("redis")
        self.port = free_port()
        try:
            self.run()
        except BaseException:
            self.stop()
            raise

    def run(self):
        """Starts the server, empty; again after terminate() or kill(), on the same port."""
        self.start([BINARY, "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no"])
        self.wait_for(self._answers, "PONG")

    def pause(self):
        """From now on connections are accepted and nothing is answered, until resume()."""
        pause(self.process)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def _answers(self):
        try:
            return self.ask("PING") == b"+PONG\r\n"
        except OSError:
            return False

    def ask(self, line):
        """Sends one inline command; answers the raw reply (one read)."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as s:
            s.sendall(line.encode() + b"\r\n")
            return s.recv(65536)

    def ask_all(self, lines):
        """Sends inline commands that answer an integer each; answers these."""
        with socket.create_connection(("127.0.0.1", self.port), 20) as s, s.makefile("rb") as replies:
            s.sendall("".join(line + "\r\n" for line in lines).encode())
            return [int(replies.readline().removeprefix(b":")) for _ in lines]

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"
