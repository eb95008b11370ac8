"""The proxies of examples/proxies with their configurations there, on ports of their own, and an application behind them."""

import http.client
import http.server
import shutil
import socket
import sys
import threading
from pathlib import Path

from .curl import curl, parse
from .daemon import ROOT
from .envoy import find_binary
from .program import Program, free_port

EXAMPLES = ROOT / "examples/proxies"


class App:
    """Answers every request with its path, and keeps what came: `seen`; of the last one `fields`, `body`. A context manager."""

    def __enter__(self):
        app = self
        self.seen, self.fields, self.body = [], None, b""
        http.client._MAXHEADERS = 1000  # so that nothing but the proxy refuses

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                app.seen.append((self.command, self.path))
                app.fields = self.headers
                app.body = self.read_body()
                body = f"app {self.command} {self.path}\n".encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def read_body(self):
                if self.headers.get("Transfer-Encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def __getattr__(self, name):  # do_GET and those of all other methods
                if name.startswith("do_"):
                    return self.answer
                raise AttributeError(name)

            def log_message(self, *unused):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *unused):
                pass  # a proxy that ends has let its connections go

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def packaged(name):
    """A program of a Python package of this environment, or one in PATH."""
    own = Path(sys.prefix) / "bin" / name
    return str(own) if own.exists() else shutil.which(name)


def _nginx(folder):
    # Relative paths count from the folder.
    return [shutil.which("nginx") or "/usr/sbin/nginx", "-p", folder, "-c", f"{folder}/nginx.conf", "-e", "stderr"]


def _haproxy(folder):
    return [shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-f", f"{folder}/haproxy.cfg"]


def _caddy(folder):
    return [packaged("caddy"), "run", "--config", f"{folder}/Caddyfile", "--adapter", "caddyfile"]


def _traefik(folder):
    return [packaged("traefik"), f"--configFile={folder}/traefik.yml"]


def _envoy(folder):
    return [
        find_binary(),
        "-c",
        f"{folder}/envoy.yaml",
        "--concurrency",
        "1",
        "--use-dynamic-base-id",
        "--log-level",
        "warn",
    ]


COMMANDS = {"nginx": _nginx, "haproxy": _haproxy, "caddy": _caddy, "traefik": _traefik, "envoy": _envoy}


class Proxy(Program):
    """One of COMMANDS; `changes` (text → text) are made in its configuration, each must be found.

    Its time-outs are longer than the example's, as Sluice on a busy machine must not look gone; not when `hasty`.
    """

    def __init__(self, name, sluice_port, app_port, changes=None, hasty=False):
        super().__init__(name)
        Path(self.folder).chmod(0o755)  # nginx of root works as another user, who keeps bodies in there
        self.port = free_port()
        left = dict(changes or {})
        for source in EXAMPLES.iterdir():
            text = source.read_text(encoding="utf-8")
            for old, new in (("8080", sluice_port), ("8001", app_port), ("8000", self.port)):
                text = text.replace(f"127.0.0.1:{old}", f"127.0.0.1:{new}")
                text = text.replace(f"port_value: {old}", f"port_value: {new}")
            for old, new in (("250ms", "8s"), ("timeout = 250 ", "timeout = 8000 "), ("0.25s", "8s")):
                text = text if hasty else text.replace(old, new)
            for old in [old for old in left if old in text]:
                text = text.replace(old, left.pop(old))
            Path(self.folder, source.name).write_text(text, encoding="utf-8")
        if left:
            raise ValueError(f"no configuration has {list(left)}")
        try:
            self.start(COMMANDS[name](self.folder), env={"HOME": self.folder, "XDG_DATA_HOME": self.folder})
            self.wait_for(self._is_ready, "answers")
        except BaseException:
            self.stop()
            raise

    def _is_ready(self):
        # Traefik answers 404 until it has read its routes. No key and another method: little is counted.
        try:
            return curl(self.url("/ready"), "--request", "POST", "--header", "x-api-key: ready").status != 404
        except RuntimeError:
            return False

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def send(self, fields, method="GET", path="/", body=b""):
        """A request of these bytes, as curl would not send it: `fields` are lines. None when it is not answered."""
        first = [b"%s %s HTTP/1.1" % (method.encode(), path.encode("latin-1")), b"Host: 127.0.0.1:%d" % self.port]
        head = b"\r\n".join([*first, *fields])
        raw = b""
        with socket.create_connection(("127.0.0.1", self.port), 30) as s:
            try:
                s.sendall(head + b"\r\nConnection: close\r\n\r\n" + body)
                while chunk := s.recv(1 << 16):
                    raw += chunk
            except ConnectionError:
                pass  # it was refused before the end
        return parse(raw) if b"\r\n\r\n" in raw else None
