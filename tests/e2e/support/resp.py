"""The Redis protocol by bytes: what no client library sends."""

import socket


def command(*words):
    """As a client library sends it."""
    texts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%s\r\n" % (len(text), text) for text in texts)


class Wire:
    """A connection. A context manager."""

    def __init__(self, port, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(60)
        self.socket.connect(("127.0.0.1", port))
        self.replies = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.replies.close()
        self.socket.close()

    def send(self, data):
        """False: the server has closed the connection."""
        try:
            self.socket.sendall(data)
            return True
        except ConnectionError:
            return False

    def reply(self):
        """The next reply: an int, the bytes of a string, a list, or an error as an Exception; None: the connection has ended."""
        try:
            line = self.replies.readline()
        except ConnectionError:
            return None
        if not line.endswith(b"\r\n"):
            return None
        kind, text = line[:1], line[1:-2]
        if kind == b"-":
            return Exception(text.decode())
        if kind == b":":
            return int(text)
        if kind == b"+":
            return text
        if kind == b"$":
            return None if text == b"-1" else self.replies.read(int(text) + 2)[:-2]
        assert kind == b"*", line
        return [self.reply() for _ in range(int(text))]

    def ask(self, *words):
        self.send(command(*words))
        return self.reply()

    def rest(self):
        """All that comes until the connection ends."""
        try:
            return self.replies.read()
        except ConnectionError:
            return b""
