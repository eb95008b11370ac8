"""What a statsd server is sent."""

import re
import socket
import threading


class Statsd:
    """Listens on a TCP port of its own and sums up counters by their names, and how often each time was told. A context
    manager."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self._lock = threading.Lock()
        self._counters = {}
        self._timers = {}
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._read, args=(peer,), daemon=True).start()

    def _read(self, peer):
        with peer, peer.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                found = re.fullmatch(r"(.*):([^:|]*)\|(c|ms)(?:\|@(.*))?", line.strip())
                if not found:
                    continue
                name, value, kind, rate = found.groups()
                with self._lock:
                    if kind == "c":
                        self._counters[name] = self._counters.get(name, 0) + int(value)
                    else:
                        self._timers[name] = self._timers.get(name, 0) + round(1 / float(rate or 1))

    def seen(self, *beginnings):
        """Counters, and how often each time was told, of names that begin so."""
        with self._lock:
            both = ({name: value for name, value in one.items() if name.startswith(beginnings)} for one in (self._counters, self._timers))
            return tuple(both)
