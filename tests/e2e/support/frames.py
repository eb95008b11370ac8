"""HTTP/2 by raw frames: what no well-behaved client sends."""

import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
ENHANCE_YOUR_CALM = 0xB


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A header field without compression, and never to be kept."""
    name, value = name.encode(), value.encode()
    assert len(name) < 127 and len(value) < 127
    return b"\x10" + bytes([len(name)]) + name + bytes([len(value)]) + value


CALL = b"".join(
    literal(name, value)
    for name, value in {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
        ":authority": "test",
        "content-type": "application/grpc",
        "te": "trailers",
    }.items()
)


def field(number, payload):
    """A length-delimited field of a protobuf message."""
    size, head = len(payload), bytes([number << 3 | 2])
    while size > 127:
        head += bytes([size & 127 | 128])
        size >>= 7
    return head + bytes([size]) + payload


def message(domain, key, value):
    """A RateLimitRequest with one descriptor, as gRPC frames it."""
    entry = field(1, key.encode()) + field(2, value.encode())
    text = field(1, domain.encode()) + field(2, field(1, entry))
    return b"\0" + struct.pack(">I", len(text)) + text


class Peer:
    """A connection that has said hello."""

    def __init__(self, port, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(30)
        self.socket.connect(("127.0.0.1", port))
        self.socket.sendall(PREFACE + frame(SETTINGS))
        self.received = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """False: the server has closed the connection."""
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            return False

    def frames(self):
        """Frames as they come, until the server closes: (kind, flags, stream, payload)."""
        while True:
            while len(self.received) >= 9:
                size = int.from_bytes(self.received[:3], "big")
                if len(self.received) < 9 + size:
                    break
                kind, flags, stream = struct.unpack(">BBI", self.received[3:9])
                payload = self.received[9 : 9 + size]
                self.received = self.received[9 + size :]
                yield kind, flags, stream & 0x7FFFFFFF, payload
            try:
                more = self.socket.recv(1 << 16)
            except ConnectionError:
                return
            if not more:
                return
            self.received += more

    def goaway(self):
        """The error that the server ends the connection with; None: it ends without a word."""
        for kind, _, _, payload in self.frames():
            if kind == GOAWAY:
                return int.from_bytes(payload[4:8], "big")
        return None

    def call(self, stream, domain="test", key="free", value="x"):
        """One call from beginning to end; the kinds of the frames it was answered by."""
        self.send(frame(HEADERS, END_HEADERS, stream, CALL) + frame(DATA, END_STREAM, stream, message(domain, key, value)))
        kinds = []
        for kind, flags, at, _ in self.frames():
            if at != stream:
                continue
            kinds.append(kind)
            if flags & END_STREAM and kind in (HEADERS, DATA) or kind == RST_STREAM:
                break
        return kinds
