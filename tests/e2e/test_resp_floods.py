"""The Redis protocol by peers that send anything: an error reply or a closed link, and others notice nothing."""

import itertools
import random
import re
import unittest

from support.curl import curl
from support.daemon import Sluice
from support.policies import RATE_LIMIT_SERVICE
from support.program import memory, wait_until
from support.resp import Wire, command

MOST_GROWTH = 16 << 20  # bytes of memory that a peer may cost
NUMBERS = [
    *(sign * number for number in (1, 2**31, 2**32, 2**53, 10**12, 10**15, 2**63 - 1, 2**63, 2**64, 10**30) for sign in (1, -1)),
    *(0, "", "-", "+", "+1", "-0", "00", "1.5", "1e3", "nan", "inf", "0x10", " 1", "1 ", "١", b"\0", b"\xff\xfe", "9" * 1000),
]


class RespFloods(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(Sluice(RATE_LIMIT_SERVICE, "--threads", "2", "--listen.resp", "127.0.0.1:0"))
        cls.port = cls.daemon.ports["resp"]

    def setUp(self):
        self.bystander = self.wire()
        self.before = memory(self.daemon.process.pid)
        self.addCleanup(self.assert_unharmed)

    def wire(self, **options):
        return self.enterContext(Wire(self.port, **options))

    def open_connections(self):
        text = curl(self.daemon.url("/metrics", "admin")).body
        opened, closed = (int(re.search(rf"^sluice_connections_{what}_total (\d+)$", text, re.M)[1]) for what in ("opened", "closed"))
        return opened - closed

    def assert_unharmed(self):
        with Wire(self.port) as another:
            self.assertEqual(another.ask("PING"), b"PONG")
        self.assertIsNone(self.daemon.process.poll(), self.daemon.log())
        self.assertLess(memory(self.daemon.process.pid) - self.before, MOST_GROWTH)

    def assert_ended(self, data, message):
        """That is the answer to it, and then the connection ends."""
        wire = self.wire()
        wire.send(data)
        self.assertEqual(wire.rest(), b"-ERR Protocol error: " + message + b"\r\n", data[:80])
        self.assertEqual(self.bystander.ask("PING"), b"PONG")

    def test_what_is_no_command_ends_the_connection(self):
        for data, message in {
            b"*2\r\n$4\r\nECHO\r\n$536870912\r\n": b"invalid bulk length: 0 to 65536 bytes",
            b"*2\r\n$4\r\nECHO\r\n$9223372036854775808\r\n": b"invalid bulk length",
            b"*2\r\n$4\r\nECHO\r\n$-1\r\n": b"invalid bulk length: 0 to 65536 bytes",
            b"*2147483647\r\n": b"invalid multibulk length: at most 1024 arguments",
            b"*1025\r\n": b"invalid multibulk length: at most 1024 arguments",
            b"*99999999999999999999\r\n": b"invalid multibulk length",
            b"*" + b"0" * 10_000: b"invalid multibulk length",
            b"*1\r\n" * 100_000: b"expected '$', got '*'",
            b"*1\r\n:5\r\n": b"expected '$', got ':'",
            b"*1\r\n%1\r\n": b"expected '$', got '%'",
            b"*1\r\n\0": b"expected '$', got '\\x00'",
            b"*1\r\n$2\r\nabcd": b"a bulk string does not end where it said",
            b'ECHO "a\r\n': b"unbalanced quotes in request",
            b"x" * (1 << 20): b"too big inline request",
            command("ECHO", *["x" * 65536] * 2): b"too long: at most 131072 bytes a command",
        }.items():
            self.assert_ended(data, message)

    def test_a_bulk_that_was_announced_and_goes_on_coming(self):
        """What comes after the error is dropped for a while, so that the error is not lost; it is kept nowhere."""
        wire = self.wire()
        wire.send(b"*2\r\n$4\r\nECHO\r\n$536870912\r\n")
        sent = 0
        while sent < 512 << 20 and wire.send(b"x" * (1 << 20)):
            sent += 1 << 20
        self.assertIn(wire.rest(), (b"-ERR Protocol error: invalid bulk length: 0 to 65536 bytes\r\n", b""))

    def test_a_million_empty_commands(self):
        for empty in (b"*0\r\n", b"*-1\r\n", b"\r\n", b"\n"):
            wire = self.wire()
            for _ in range(100):
                self.assertTrue(wire.send(empty * 10_000))
            self.assertEqual(wire.ask("PING"), b"PONG")

    def test_random_bytes(self):
        draw = random.Random(1)
        for _ in range(200):
            wire = self.wire()
            wire.send(draw.randbytes(draw.randint(1, 2000)) + b"\r\n*x\r\n")
            self.assertRegex(wire.rest(), rb"-ERR [^\r\n]*\r\n$")

    def test_words_of_other_counts_and_types(self):
        names = ["CL.THROTTLE", "THROTTLE", "GCRA", "PEEK", "RESET", "SLUICE", "AUTH", "HELLO", "SELECT", "CLIENT", "COMMAND", "INFO", "ECHO"]
        wire = self.wire()
        for name, count in itertools.product([*names, "", "nonsense", b"\xff\0", "GET", "EVAL", "MULTI", "SUBSCRIBE"], range(12)):
            words = [name, *["x"] * count]
            wire.send(command(*words) + command("DISCARD") + command("PING"))
            replies = [wire.reply()]
            while replies[-1] != b"PONG":
                self.assertNotEqual(replies, [None] * 3, words)
                replies.append(wire.reply())
        for sub in ("CHECK", "PEEK", "REFUND", "PENALIZE", "SETTLE", "RESET", "BAN", "ACQUIRE", "RELEASE", "RESERVE", "COMMIT", "CANCEL"):
            for count, word in itertools.product(range(9), ["x", "|", "1", "-1", str(2**63), ""]):
                reply = wire.ask("SLUICE", sub, *[word] * count)
                self.assertIsNotNone(reply, (sub, count, word))

    def assert_sane(self, words, reply):
        self.assertIsInstance(reply, (list, Exception), words)
        if isinstance(reply, Exception):
            self.assertRegex(str(reply), "^ERR ", words)
            return
        if words[0] == "THROTTLE":
            allowed, limit, remaining, reset_after, retry_after = reply
            limited = 1 - allowed
            retry_after = -1 if allowed and retry_after == 0 else retry_after
        else:
            limited, limit, remaining, retry_after, reset_after = reply
        self.assertIn(limited, (0, 1), words)
        self.assertTrue(1 <= limit <= 10**15, (words, reply))
        self.assertTrue(0 <= remaining <= limit, (words, reply))
        self.assertTrue(reset_after >= 0, (words, reply))
        self.assertTrue(retry_after >= 1 and limited or retry_after == -1, (words, reply))

    def test_numbers_at_and_beyond_their_ends(self):
        wire = self.wire()
        good = {
            "CL.THROTTLE": [15, 30, 60, 1],
            "THROTTLE": [15, 30, 60, 1],
            "GCRA": [15, 30, 60, "TOKENS", 1],
            "PEEK": [15, 30, 60],
        }
        for name, numbers in good.items():
            for place, number in itertools.product(range(len(numbers)), NUMBERS):
                for key in ("fresh", "used"):
                    words = [name, f"{key} {place} {number}" if key == "fresh" else key, *numbers]
                    words[2 + place] = number
                    self.assert_sane(words, wire.ask(*words))
        for place, number in itertools.product(range(2), NUMBERS):
            words = ["SLUICE", "CHECK", "test", 1, "two", "x"]
            words[2 + place] = number
            self.assertIsNotNone(wire.ask(*words), words)
        self.assertEqual(wire.ask("CL.THROTTLE", "another", 15, 30, 60), [0, 16, 15, -1, 2])

    def test_all_three_numbers_at_their_ends(self):
        wire = self.wire()
        bursts, counts, periods = (0, 10**15, 2**63 - 1), (1, 10**12), (1, 31_622_400)
        for burst, count, period, quantity in itertools.product(bursts, counts, periods, (0, 1, 2**63 - 1, -1, -(2**63))):
            for turn in range(3):
                words = ["CL.THROTTLE", f"{burst} {count} {period}", burst, count, period, quantity]
                reply = wire.ask(*words)
                self.assertIsInstance(reply, list, words)
                self.assert_sane(words, reply)
                if quantity <= 0:
                    self.assertEqual(reply[0], 0, (words, turn))

    def test_keys_of_any_bytes(self):
        wire = self.wire()
        keys = [bytes([byte]) for byte in range(256)] + [b"", b"\r\n", b"$5\r\n", b"*1\r\n", b"k" * 65536, b"\xf0\x28\x8c\x28", b"{a}", b"%41"]
        for key in keys:
            self.assertEqual(wire.ask("CL.THROTTLE", key, 15, 30, 86400), [0, 16, 15, -1, 2880], key[:20])
        for key in keys:
            self.assertEqual(wire.ask("PEEK", key, 15, 30, 86400), [0, 16, 15, -1, 2880], key[:20])

    def test_commands_cut_anywhere(self):
        wire = self.wire()
        text = command("CL.THROTTLE", "cut", 99, 1, 86400) + command("PING") + b"ECHO 'a b'\r\n"
        for _ in range(2):
            for byte in range(len(text)):
                wire.send(text[byte : byte + 1])
            self.assertEqual(len(wire.reply()), 5)
            self.assertEqual((wire.reply(), wire.reply()), (b"PONG", b"a b"))
        for size in range(1, len(text)):
            half = self.wire()
            half.send(text[:size])
            half.socket.close()
            half.replies.close()

    def test_peers_that_stall(self):
        """One stops in the middle of a command, one never reads: both are gone in about ten seconds."""
        before = self.open_connections()
        half = self.wire()
        half.send(command("CL.THROTTLE", "half", 15, 30, 60)[:-1])
        deaf = self.wire(receive_buffer=4096)
        deaf.socket.settimeout(0.5)
        piece = command("CL.THROTTLE", "deaf", 15, 30, 60) * 1000
        sent = 0
        try:
            while sent < 256 << 20 and deaf.send(piece):
                sent += len(piece)
        except TimeoutError:
            pass  # no more is taken
        self.assertLess(sent, 256 << 20)
        self.assertEqual(self.bystander.ask("PING"), b"PONG")
        self.assertLess(memory(self.daemon.process.pid) - self.before, MOST_GROWTH)
        self.assertEqual(half.rest(), b"")
        # Not by reading, which it never does.
        wait_until(lambda: self.open_connections() <= before, "the end of the one that never reads")


if __name__ == "__main__":
    unittest.main()
