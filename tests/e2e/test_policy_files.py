"""Policy files that others' programs write, and broken ones: what lint says, and that the daemon does not start."""

import tempfile
import textwrap
import unittest
from pathlib import Path

from support.curl import curl
from support.daemon import Sluice, command


def rule(text):
    return f"domain: d\ndescriptors:\n{textwrap.indent(textwrap.dedent(text).strip(), '  ')}\n"


class PolicyFiles(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def assert_refused(self, text, line, *words):
        """lint and serve both end with 1 and tell the file, the line and the words."""
        path = self.folder / "policy.yaml"
        path.write_text(text, encoding="utf-8")
        listeners = [word for name in ("grpc", "http", "admin") for word in (f"--listen.{name}", "127.0.0.1:0")]
        for run in (command("lint", path), command("serve", "--policy", path, *listeners)):
            said = run.stdout + run.stderr
            self.assertEqual(run.returncode, 1, said)
            self.assertIn(f"{path}:{line}:", said)
            for word in words:
                self.assertIn(word, said)

    def test_public_report_70(self):
        self.assert_refused(
            rule("""
                - key: messaging
                  value: foo
                  rate_limit: { unit: second, requests_per_unit: 1 }
                - key: messaging
                  value: foo
                  rate_limit: { unit: minute, requests_per_unit: 1 }
                """),
            6,
            "messaging",
            "foo",
        )

    def test_public_report_74(self):
        limit = "- { key: k, rate_limit: { %s } }"
        self.assert_refused(rule(limit % "unit: foo, requests_per_unit: 1"), 3, "unit", "foo")
        self.assert_refused(rule(limit % "unlimited: true, unit: second"), 3, "unlimited")
        self.assert_refused(
            rule(limit % "name: a, unit: second, requests_per_unit: 1, replaces: [{ name: a }]"), 3, "replace"
        )
        self.assert_refused(
            rule(limit % 'name: a, unit: second, requests_per_unit: 1, replaces: [{ name: "" }]'), 3, "name"
        )
        self.assert_refused(
            rule(limit % "unit: second, requests_per_units: 1"), 3, "requests_per_units", "requests_per_unit"
        )
        self.assert_refused(rule(limit % "unit: second, requests_per_unit: 1.5"), 3, "1.5")
        self.assert_refused(rule('- { key: "", rate_limit: { unit: second, requests_per_unit: 1 } }'), 3, "key")
        self.assert_refused("domain: ''\ndescriptors: []\n", 1, "domain")
        path = self.folder / "good.yaml"
        for unit in ("SECOND", "second", "Month"):
            path.write_text(rule(limit % f"unit: {unit}, requests_per_unit: 1"), encoding="utf-8")
            self.assertEqual(command("lint", path).returncode, 0, unit)

    def test_public_report_75(self):
        text = textwrap.dedent("""
            name: first-listener
            domain: first-listener
            descriptors:
              - key: route
                value: route
                rate_limit: null
                descriptors:
                  - key: rule-0
                    value: ""
                    rate_limit: { unit: MONTH, requests_per_unit: 4294967295, unlimited: false }
                    descriptors: []
            """)
        with Sluice(text) as sluice:

            def ask(*entries):
                descriptor = [{"key": key, "value": value} for key, value in entries]
                return curl(
                    sluice.url("/v1/check"), data={"domain": "first-listener", "descriptors": [descriptor]}
                ).json

            self.assertEqual(ask(("route", "route"))["reason"], "no_limit")
            self.assertEqual(ask(("route", "route"), ("rule-0", "x"))["limit"], 4294967295)
        self.assert_refused(
            rule("- { key: k, rate_limit: { unit: month, requests_per_unit: 4294967296 } }"), 3, "4294967296"
        )

    def test_all_errors_of_all_files_at_once(self):
        for name in ("a.yaml", "b.yaml"):
            text = rule("- { key: k, rate_limit: { unit: fortnight, requests_per_unit: x } }")
            (self.folder / name).write_text(text.replace("domain: d", f"domain: {name}"), encoding="utf-8")
        said = command("lint", self.folder)
        self.assertEqual(said.returncode, 1)
        for name in ("a.yaml", "b.yaml"):
            self.assertEqual(said.stdout.count(f"{name}:3:"), 2, said.stdout)

    def test_a_policy_that_cannot_be_read(self):
        for run in (
            command("lint", self.folder / "missing.yaml"),
            command("serve", "--policy", self.folder / "missing.yaml"),
        ):
            self.assertEqual(run.returncode, 1)
            self.assertIn("missing.yaml", run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main()
