"""Many HTTP requests in one write on one connection, so that the server sees them at one instant."""

import json
import socket
import time

from .curl import parse


def post_at_once(port, path, bodies):
    """Sends all requests by one call and reads all answers: (answers in order, seconds from first to last byte)."""
    wire = b""
    for n, body in enumerate(bodies):
        data = json.dumps(body).encode()
        close = b"Connection: close\r\n" if n == len(bodies) - 1 else b""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        )
        wire += head.encode() + close + b"\r\n" + data
    with socket.create_connection(("127.0.0.1", port), 30) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start = time.monotonic()
        s.sendall(wire)
        raw = b""
        while chunk := s.recv(1 << 16):
            raw += chunk
        elapsed = time.monotonic() - start
    answers = []
    while raw:
        head, _, rest = raw.partition(b"\r\n\r\n")
        answer = parse(head + b"\r\n\r\n")
        length = int(answer.one("Content-Length"))
        answer.body, raw = rest[:length].decode(), rest[length:]
        answers.append(answer)
    return answers, elapsed
