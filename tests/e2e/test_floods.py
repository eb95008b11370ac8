"""Peers that flood, stall and lie, by raw frames: what they get is bounded and named, and others notice nothing."""

import os
import socket
import struct
import unittest

from support.curl import curl
from support.daemon import Sluice
from support.frames import (
    ACK,
    CALL,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    GOAWAY,
    HEADERS,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Peer,
    frame,
    message,
)
from support.policies import RATE_LIMIT_SERVICE
from support.program import memory, wait_until

LONG = bool(os.environ.get("SLUICE_FLOOD_LONG"))  # the long form: a million keys in place of 100 000
MOST_GROWTH = 24 << 20  # bytes of memory that a flood may cost


class Floods(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Sluice(RATE_LIMIT_SERVICE, "--threads", "2", "--max_connections", "3000")
        cls.port = cls.daemon.ports["grpc"]

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()

    def setUp(self):
        self.bystander = Peer(self.port)
        self.addCleanup(self.bystander.socket.close)
        self.stream = -1
        self.serve_bystander()
        self.before = memory(self.daemon.process.pid)

    def serve_bystander(self):
        self.stream += 2
        self.assertEqual(self.bystander.call(self.stream)[0], HEADERS)

    def counter(self, name):
        text = curl(self.daemon.url("/metrics", "admin")).body
        return sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))

    def flood(self, piece, most=4000):
        """Sends pieces until the server has had enough; what it says."""
        refused = self.counter("sluice_protocol_errors_total")
        with Peer(self.port) as peer:
            for n in range(most):
                if not peer.send(piece(n)):
                    break
                if n % 16 == 0:
                    self.serve_bystander()
            error = peer.goaway()
        self.serve_bystander()
        self.assertGreater(self.counter("sluice_protocol_errors_total"), refused)
        self.assertLess(memory(self.daemon.process.pid) - self.before, MOST_GROWTH)
        return error

    def assert_calmed(self, error):
        # None: the GOAWAY was lost, as the flood went on after it.
        self.assertIn(error, (ENHANCE_YOUR_CALM, None))

    def test_rapid_reset(self):
        def piece(n):
            streams = range(1 + 400 * n, 1 + 400 * (n + 1), 2)
            return b"".join(
                frame(HEADERS, END_HEADERS, stream, CALL) + frame(RST_STREAM, 0, stream, struct.pack(">I", 8))
                for stream in streams
            )

        self.assert_calmed(self.flood(piece))

    def test_settings(self):
        self.assert_calmed(self.flood(lambda n: frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100)) * 100))

    def test_pings(self):
        self.assert_calmed(self.flood(lambda n: frame(PING, 0, 0, b"8 bytes.") * 100))

    def test_pings_that_answer_nothing(self):
        self.assert_calmed(self.flood(lambda n: frame(PING, ACK, 0, b"8 bytes.") * 100))

    def test_window_updates(self):
        self.assert_calmed(self.flood(lambda n: frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)) * 100))

    def test_empty_data(self):
        opened = frame(HEADERS, END_HEADERS, 1, CALL)
        self.assert_calmed(self.flood(lambda n: (opened if n == 0 else b"") + frame(DATA, 0, 1) * 100))

    def test_continuation_without_end(self):
        def piece(n):
            head = frame(HEADERS, 0, 1, CALL) if n == 0 else b""
            return head + frame(CONTINUATION, 0, 1, b"\x10\x01a\x7f\xf1\x1e" + b"x" * 4080) * 4

        self.assertIsNotNone(self.flood(piece) or ENHANCE_YOUR_CALM)

    def test_window_beyond_its_end(self):
        with Peer(self.port) as peer:
            peer.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0x7FFFFFFF)) * 2)
            self.assertEqual(peer.goaway(), 3)  # FLOW_CONTROL_ERROR
        self.serve_bystander()

    def test_answers_that_nobody_reads(self):
        with Peer(self.port, receive_buffer=4096) as deaf:
            deaf.socket.settimeout(0.2)
            stream = 1
            sent = 0
            while sent < 64 << 20:
                calls = b"".join(
                    frame(HEADERS, END_HEADERS, at, CALL) + frame(DATA, END_STREAM, at, message("test", "free", "x"))
                    for at in range(stream, stream + 200, 2)
                )
                stream += 200
                if not deaf.send(calls):
                    break
                sent += len(calls)
            # It takes no more, or it has had enough and only waits for its farewell to be read.
            if sent >= 64 << 20:
                deaf.socket.settimeout(30)
                self.assertEqual(deaf.goaway(), ENHANCE_YOUR_CALM)
            self.serve_bystander()
            self.assertLess(memory(self.daemon.process.pid) - self.before, MOST_GROWTH)

    def test_a_thousand_half_open_and_slow_ones(self):
        half = [socket.create_connection(("127.0.0.1", self.port), 30) for _ in range(500)]
        slow = [socket.create_connection(("127.0.0.1", self.daemon.ports["http"]), 30) for _ in range(500)]
        try:
            for n, one in enumerate(half):
                one.sendall(PREFACE[: n % len(PREFACE)])
            for one in slow:
                one.sendall(b"POST /v1/check HTTP/1.1\r\nHost: test\r\nX-Slow: ")
            for one in slow:
                one.sendall(b"a")
            self.serve_bystander()
            self.assertEqual(curl(self.daemon.url("/healthcheck")).status, 200)
            self.assertLess(memory(self.daemon.process.pid) - self.before, MOST_GROWTH)
            # They are told, and gone, in about ten seconds.
            slow[0].settimeout(60)
            answer = b""
            while more := slow[0].recv(4096):
                answer += more
            self.assertIn(b"408 Request Timeout", answer)
            half[0].settimeout(60)
            while half[0].recv(4096):
                pass
        finally:
            for one in half + slow:
                one.close()

    def test_resets_in_the_middle(self):
        reset = struct.pack("ii", 1, 0)
        for n in range(300):
            peer = Peer(self.port)
            peer.send((frame(HEADERS, END_HEADERS, 1, CALL) + frame(DATA, END_STREAM, 1, message("test", "free", "x")))[: 20 + n])
            peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            peer.socket.close()
        self.serve_bystander()
        opened = self.counter("sluice_connections_opened_total")
        self.assertGreaterEqual(opened, 300)
        wait_until(
            lambda: self.counter("sluice_connections_opened_total") - self.counter("sluice_connections_closed_total") < 10,
            "connections that were reset are closed",
        )

    def test_too_many_connections_are_told_so(self):
        with Sluice(RATE_LIMIT_SERVICE, "--listen.grpc.max_connections", "2") as daemon:
            with Peer(daemon.ports["grpc"]) as first, Peer(daemon.ports["grpc"]) as second:
                self.assertEqual(first.call(1)[0], HEADERS)
                self.assertEqual(second.call(1)[0], HEADERS)
                with Peer(daemon.ports["grpc"]) as third:
                    self.assertEqual(third.goaway(), ENHANCE_YOUR_CALM)
                self.assertEqual(curl(daemon.url("/healthcheck")).status, 200)


class RandomKeys(unittest.TestCase):
    def test_memory_is_bounded(self):
        keys, most = (1_000_000, 50_000) if LONG else (100_000, 10_000)
        with Sluice(RATE_LIMIT_SERVICE, "--store.memory.max_keys", str(most)) as daemon:
            with Peer(daemon.ports["grpc"]) as peer:
                frames = peer.frames()

                def ask(begin, count):
                    peer.send(
                        b"".join(
                            frame(HEADERS, END_HEADERS, 1 + 2 * n, CALL)
                            + frame(DATA, END_STREAM, 1 + 2 * n, message("test", "one", f"random-{n * 2654435761 % 2**32}"))
                            for n in range(begin, begin + count)
                        )
                        + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 16))
                    )
                    left = count
                    while left:
                        kind, flags, stream, payload = next(frames)
                        self.assertNotIn(kind, (GOAWAY, RST_STREAM), payload)
                        if stream and kind == HEADERS and flags & END_STREAM:
                            left -= 1

                done = 0
                while done < 2 * most:
                    ask(done, 500)
                    done += 500
                full = memory(daemon.process.pid)
                while done < keys:
                    ask(done, 500)
                    done += 500
                self.assertLess(memory(daemon.process.pid) - full, 4 << 20)
            text = curl(daemon.url("/metrics", "admin")).body
            held = next(int(line.split()[1]) for line in text.splitlines() if line.startswith("sluice_memory_keys "))
            self.assertLessEqual(held, most)
            self.assertIn("sluice_memory_evicted_total", text)


if __name__ == "__main__":
    unittest.main()
