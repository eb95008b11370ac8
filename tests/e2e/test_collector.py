"""Spans of decisions in a real collector of OpenTelemetry, which is built from its own modules (collector/)."""

import os
import re
import unittest

from support.curl import curl
from support.daemon import ROOT, Sluice
from support.policies import RATE_LIMIT_SERVICE
from support.program import Program, can_connect, free_port

BINARY = ROOT / "build/e2e/bin/collector"
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CONFIG = """
receivers: {{ otlp: {{ protocols: {{ http: {{ endpoint: "127.0.0.1:{port}" }} }} }} }}
exporters: {{ debug: {{ verbosity: detailed }} }}
service:
  telemetry: {{ metrics: {{ level: none }} }}
  pipelines: {{ traces: {{ receivers: [otlp], exporters: [debug] }} }}
"""


class Collector(Program):
    def __init__(self):
        super().__init__("collector")
        self.port = free_port()
        try:
            self.start([str(BINARY), "--config", "yaml:" + CONFIG.format(port=self.port)])
            self.wait_for(lambda: can_connect(self.port), "listening")
        except BaseException:
            self.stop()
            raise

    def spans(self):
        """What it says of each span, by the names that it gives."""
        found = []
        for text in re.split(r"^Span #\d+\s*$", self.log(), flags=re.MULTILINE)[1:]:
            span = dict(re.findall(r"^ {4}(\w[\w ]*?)\s*: (.*?)\s*$", text, re.MULTILINE))
            span["attributes"] = dict(re.findall(r"^ {5}-> (\S+): (\w+\(.*\))\s*$", text, re.MULTILINE))
            found.append(span)
        return found


@unittest.skipUnless(os.access(BINARY, os.X_OK), f"no {BINARY}: tests/e2e/run builds it")
class RealCollector(unittest.TestCase):
    def test_spans_of_decisions(self):
        with Collector() as collector:
            tracing = ["--tracing.endpoint", f"http://127.0.0.1:{collector.port}", "--tracing.service", "limits"]
            with Sluice(RATE_LIMIT_SERVICE, *tracing, "--log.denial_keys", "plain") as sluice:
                body = {"domain": "test", "descriptors": [{"two": "a"}]}
                fields = ("--header", f"traceparent: 00-{TRACE}-{CALLER}-01", "--header", "tracestate: rojo=1")
                statuses = [curl(sluice.url("/v1/check"), *fields, data=body).status for _ in range(3)]
                self.assertEqual(statuses, [200, 200, 429])
                collector.wait_for(lambda: len(collector.spans()) >= 3, "3 spans")
                self.assertIn('sluice_trace_spans_total{result="exported"} 3', curl(sluice.url("/metrics", "admin")).body)
            spans, log = collector.spans(), collector.log()
        self.assertEqual(len(spans), 3)
        for span in spans:
            self.assertEqual(span["Trace ID"], TRACE)
            self.assertEqual(span["Parent ID"], CALLER)
            self.assertRegex(span["ID"], "^[0-9a-f]{16}$")
            self.assertEqual(span["TraceState"], "rojo=1")
            self.assertEqual((span["Name"], span["Kind"]), ("POST /v1/check", "Server"))
            self.assertLessEqual(span["Start time"], span["End time"])
            self.assertEqual(span["attributes"]["sluice.domain"], "Str(test)")
            self.assertEqual(span["attributes"]["sluice.cost"], "Int(1)")
        self.assertEqual(len({span["ID"] for span in spans}), 3)
        verdicts = [span["attributes"]["sluice.verdict"] for span in spans]
        self.assertEqual(verdicts, ["Str(allowed)", "Str(allowed)", "Str(denied)"])
        self.assertIn("service.name: Str(limits)", log)
        self.assertRegex(log, r"InstrumentationScope sluice \d")
        self.assertNotRegex(log, r"\t(warn|error)\t")


if __name__ == "__main__":
    unittest.main()
