"""What the command line says of mistakes, and that an answer nobody could read is no success."""

import subprocess
import unittest
from pathlib import Path

from support.daemon import BINARY, command

ARTICLE = Path(__file__).resolve().parents[2] / "examples/policies/article.yaml"


class CommandLine(unittest.TestCase):
    def assert_refused(self, sentence, *arguments):
        run = command(*arguments)
        self.assertEqual((run.returncode, run.stderr), (1, f"sluice {arguments[0]}: {sentence}\n"))

    def test_values_that_are_none(self):
        check = ("check", "--policy", ARTICLE, "user=42")
        self.assert_refused("--cost: expected a whole number, found '1.5'", *check, "--cost", "1.5")
        self.assert_refused("--repeat: expected a whole number, found 'x'", *check, "--repeat", "x")
        self.assert_refused("--domain is given more than once", *check, "--domain", "a", "--domain", "b")
        self.assert_refused("--policy needs a value", "check", "--policy")
        self.assert_refused("--listen.http needs a value", "config", "--listen.http")

    def test_output_that_cannot_be_written(self):
        for arguments in (
            ("check", "--policy", ARTICLE, "user=42"),
            ("check", "--policy", ARTICLE, "--cost", "31", "user=42"),
            ("lint", ARTICLE),
            ("config",),
            ("--help",),
        ):
            with open("/dev/full", "w", encoding="utf-8") as full:
                run = subprocess.run(
                    [BINARY, *map(str, arguments)],
                    stdout=full,
                    stderr=subprocess.PIPE,
                    text=True,
                    timeout=60,
                    check=False,
                )
            self.assertEqual((run.returncode, run.stderr), (1, "sluice: cannot write to standard output\n"), arguments)


if __name__ == "__main__":
    unittest.main()
