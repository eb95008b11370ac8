"""Envoy's rate limit filter in front of a service, with examples/envoy as it stands."""

import subprocess
import unittest

from support import curl as curl_support
from support.collector import Collector, attributes
from support.curl import curl
from support.daemon import Sluice
from support.envoy import EXAMPLE, Envoy
from support.program import wait_until

POLICY = EXAMPLE / "policy.yaml"


class EnvoyAsks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sluice = cls.enterClassContext(Sluice(POLICY))
        cls.envoy = cls.enterClassContext(Envoy(cls.sluice.ports["grpc"]))

    def call(self, path, key, *arguments):
        return curl(self.envoy.url(path), "--header", f"x-api-key: {key}", *arguments)

    def test_answers_up_to_the_limit_and_then_429(self):
        for remaining in ("4", "3", "2", "1", "0"):
            answer = self.call("/", "a")
            self.assertEqual((answer.status, answer.body), (200, "the service\n"))
            self.assertEqual(answer.one("x-ratelimit-limit"), '6, 6;w=3600;name="PerKey"')
            self.assertEqual(answer.one("x-ratelimit-remaining"), remaining)
            self.assertIsNone(answer.one("x-envoy-ratelimited"))
            self.assertIsNone(answer.one("retry-after"))

        denied = self.call("/", "a")
        self.assertEqual(denied.status, 429)
        self.assertEqual(denied.one("x-envoy-ratelimited"), "true")
        self.assertEqual(denied.one("x-ratelimit-limit"), '6, 6;w=3600;name="PerKey"')
        self.assertEqual(denied.one("x-ratelimit-remaining"), "0")
        # One token comes in ten minutes; the calls above took some of that.
        self.assertIn(int(denied.one("retry-after")), range(500, 601))
        self.assertEqual(denied.one("x-ratelimit-reset"), denied.one("retry-after"))

        self.assertEqual(self.call("/", "somebody else").status, 200)

    def test_many_calls_at_once_get_exactly_the_burst(self):
        urls = [self.envoy.url(f"/{n}") for n in range(40)]
        command = [
            curl_support.BINARY,
            "--silent",
            "--parallel",
            "--parallel-max",
            "40",
            "--header",
            "x-api-key: crowd",
        ]
        for url in urls:
            command += ["--output", "/dev/null", url]
        run = subprocess.run([*command, "--write-out", "%{http_code}\n"], capture_output=True, text=True, check=True)
        codes = run.stdout.split()
        self.assertEqual((codes.count("200"), codes.count("429")), (5, 35), codes)

    def test_a_request_weighs_what_its_header_says(self):
        weights = [("4", 200, "6"), ("4", 200, "2"), ("4", 429, "2"), ("2", 200, "0"), ("1", 429, "0")]
        for cost, status, remaining in weights:
            answer = self.call("/upload", "w", "--header", f"x-cost: {cost}")
            self.assertEqual((answer.status, answer.one("x-ratelimit-remaining")), (status, remaining), cost)

    def test_a_weight_of_zero_looks_without_taking(self):
        for _ in range(3):
            answer = self.call("/upload", "peek", "--header", "x-cost: 0")
            self.assertEqual((answer.status, answer.one("x-ratelimit-remaining")), (200, "10"))

    def test_a_request_that_does_not_tell_its_weight_is_counted_all_the_same(self):
        codes = [self.call("/upload", "silent", "--header", f"x-cost: {cost}").status for cost in ("", "abc", "-1") * 7]
        self.assertEqual(codes, [200] * 20 + [429])

    def test_shadow_mode_never_blocks(self):
        for _ in range(6):
            answer = self.call("/reports", "s")
            self.assertEqual((answer.status, answer.body), (200, "the service\n"))
            self.assertIsNone(answer.one("x-envoy-ratelimited"))
        metrics = curl(self.sluice.url("/metrics", "admin")).body
        shadow = [line for line in metrics.splitlines() if "ReportsOnTrial" in line and "shadow" in line]
        self.assertTrue(shadow and shadow[0].endswith(" 4"), metrics)

    def test_without_a_key_there_is_nothing_to_count(self):
        for _ in range(8):
            self.assertEqual(curl(self.envoy.url("/")).status, 200)

    def test_a_grpc_caller_is_told_in_its_own_way(self):
        arguments = ["--http2-prior-knowledge", "--header", "content-type: application/grpc", "--request", "POST"]
        for _ in range(5):
            self.call("/", "g", *arguments)
        denied = self.call("/", "g", *arguments)
        self.assertEqual((denied.status, denied.one("grpc-status")), (200, "8"))
        self.assertEqual(denied.one("x-envoy-ratelimited"), "true")


class ServiceIsGone(unittest.TestCase):
    def test_fails_open_as_configured_and_limits_again_after_a_restart(self):
        with Sluice(POLICY) as sluice, Envoy(sluice.ports["grpc"]) as envoy:
            key = ["--header", "x-api-key: a"]
            codes = [curl(envoy.url("/"), *key).status for _ in range(6)]
            self.assertEqual(codes, [200] * 5 + [429])

            sluice.kill()
            codes = [curl(envoy.url("/"), *key).status for _ in range(6)]
            self.assertEqual(codes, [200] * 6)
            self.assertEqual(envoy.counter("cluster.backend.ratelimit.failure_mode_allowed"), 6)

            sluice.run()
            # Envoy comes back to the service in its own time; from then on the fresh counters rule.
            envoy.wait_for(lambda: curl(envoy.url("/"), *key).one("x-ratelimit-remaining") is not None, "asks again")
            codes = [curl(envoy.url("/"), *key).status for _ in range(5)]
            self.assertEqual(codes, [200] * 4 + [429])

    def test_fails_closed_as_configured(self):
        changes = {"failure_mode_deny: false": "failure_mode_deny: true"}
        with Sluice(POLICY) as sluice, Envoy(sluice.ports["grpc"], changes) as envoy:
            key = ["--header", "x-api-key: a"]
            self.assertEqual(curl(envoy.url("/"), *key).status, 200)
            sluice.kill()
            self.assertEqual(curl(envoy.url("/"), *key).status, 500)


class Traces(unittest.TestCase):
    """Envoy tells whose trace a request belongs to, and Sluice's span hangs below its own."""

    def test_the_decision_is_a_span_of_the_requests_trace(self):
        collector = self.enterContext(Collector())
        flags = ["--tracing.endpoint", collector.url, "--tracing.sample_ratio", "0", "--log.denial_keys", "plain"]
        sluice = self.enterContext(Sluice(POLICY, *flags))
        tracing = f"""stat_prefix: front
                tracing:
                  provider:
                    name: envoy.tracers.opentelemetry
                    typed_config:
                      "@type": type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig
                      service_name: edge
                      http_service:
                        http_uri: {{ uri: "{collector.url}/v1/traces", cluster: collector, timeout: 1s }}
"""
        cluster = f"""  clusters:
    - name: collector
      type: STATIC
      load_assignment:
        cluster_name: collector
        endpoints:
          - lb_endpoints:
              - endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {collector.port} }} }} }}
"""
        changes = {"stat_prefix: front\n": tracing, "  clusters:\n": cluster}
        envoy = self.enterContext(Envoy(sluice.ports["grpc"], changes))
        trace, caller = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
        fields = ("x-api-key: traced", f"traceparent: 00-{trace}-{caller}-01", "tracestate: rojo=1")
        answer = curl(envoy.url("/"), *(word for field in fields for word in ("--header", field)))
        self.assertEqual(answer.status, 200)
        span = collector.wait_for("sluice")[0]
        self.assertEqual(span.trace_id.hex(), trace)
        self.assertEqual(span.trace_state, "rojo=1")
        self.assertEqual(span.name, "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit")
        told = attributes(span)
        self.assertEqual(told["sluice.domain"], "edge")
        self.assertEqual(told["sluice.limit"], "PerKey")
        self.assertEqual(told["sluice.verdict"], "allowed")
        self.assertEqual(told["sluice.key"], "traced")
        parents = wait_until(
            lambda: [one for one in collector.spans("edge") if one.span_id == span.parent_span_id], "Envoy's own span"
        )
        self.assertEqual(parents[0].trace_id.hex(), trace)


if __name__ == "__main__":
    unittest.main()
