"""RateLimitService as grpcio and the generated stubs of xds-protos see it."""

import tempfile
import time
import unittest
from pathlib import Path

import grpc
from envoy.extensions.common.ratelimit.v3.ratelimit_pb2 import RateLimitDescriptor
from envoy.service.ratelimit.v3.rls_pb2 import RateLimitRequest, RateLimitResponse
from envoy.service.ratelimit.v3.rls_pb2_grpc import RateLimitServiceStub
from envoy.type.v3.ratelimit_unit_pb2 import RateLimitUnit
from google.protobuf.wrappers_pb2 import UInt64Value

from support import curl as curl_support
from support import redis as redis_support
from support.curl import curl
from support.daemon import Sluice
from support.policies import RATE_LIMIT_SERVICE
from support.redis import Redis

OK, OVER_LIMIT = RateLimitResponse.OK, RateLimitResponse.OVER_LIMIT
RateLimit = RateLimitResponse.RateLimit
METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"


def descriptor(*entries, **fields):
    return RateLimitDescriptor(
        entries=[RateLimitDescriptor.Entry(key=key, value=value) for key, value in entries], **fields
    )


class Service(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sluice = cls.enterClassContext(Sluice(RATE_LIMIT_SERVICE))
        cls.channel = grpc.insecure_channel(cls.sluice.grpc)
        cls.addClassCleanup(cls.channel.close)
        cls.stub = RateLimitServiceStub(cls.channel)

    def ask(self, *descriptors, domain="test", **fields):
        return self.stub.ShouldRateLimit(RateLimitRequest(domain=domain, descriptors=descriptors, **fields), timeout=30)

    def assert_refused(self, code, call, *arguments, **keywords):
        with self.assertRaises(grpc.RpcError) as caught:
            call(*arguments, **keywords)
        self.assertEqual(caught.exception.code(), code, caught.exception.details())
        return caught.exception.details()


class Answers(Service):
    def test_every_field_of_an_allowed_and_a_denied_answer(self):
        year = 365 * 86400
        for remaining in (1, 0):
            before = int(time.time())
            answer = self.ask(descriptor(("two", "fields")))
            after = int(time.time()) + 1
            self.assertEqual(answer.overall_code, OK)
            self.assertEqual(len(answer.statuses), 1)
            status = answer.statuses[0]
            self.assertEqual(status.code, OK)
            self.assertEqual(status.current_limit, RateLimit(requests_per_unit=2, unit=RateLimit.YEAR))
            self.assertEqual(status.limit_remaining, remaining)
            self.assertIn(status.duration_until_reset.seconds, range(year - after % year, year - before % year + 1))
            self.assertEqual(len(answer.response_headers_to_add), 0)
            self.assertEqual(len(answer.request_headers_to_add), 0)
            self.assertEqual(answer.raw_body, b"")

        answer = self.ask(descriptor(("two", "fields")))
        self.assertEqual(answer.overall_code, OVER_LIMIT)
        status = answer.statuses[0]
        self.assertEqual(status.code, OVER_LIMIT)
        self.assertEqual(status.current_limit, RateLimit(requests_per_unit=2, unit=RateLimit.YEAR))
        self.assertEqual(status.limit_remaining, 0)
        headers = {header.key.lower(): header.value for header in answer.response_headers_to_add}
        self.assertEqual(headers, {"retry-after": str(status.duration_until_reset.seconds)})

    def test_a_name_is_shown(self):
        status = self.ask(descriptor(("five", "named"))).statuses[0]
        self.assertEqual(status.current_limit, RateLimit(requests_per_unit=5, unit=RateLimit.YEAR, name="Five"))

    def test_a_bucket_tells_when_to_come_back(self):
        for remaining in (2, 1, 0):
            self.assertEqual(self.ask(descriptor(("bucket", "b"))).statuses[0].limit_remaining, remaining)
        answer = self.ask(descriptor(("bucket", "b")))
        self.assertEqual(answer.overall_code, OVER_LIMIT)
        # A token comes in 360 s, of which the calls above took some.
        seconds = answer.statuses[0].duration_until_reset.seconds
        self.assertIn(seconds, range(300, 361))
        self.assertEqual(
            [h.value for h in answer.response_headers_to_add if h.key.lower() == "retry-after"], [str(seconds)]
        )

    def test_statuses_are_in_order_and_a_denied_request_takes_nothing(self):
        self.ask(descriptor(("one", "order")))
        for _ in range(2):
            answer = self.ask(
                descriptor(("five", "order")),
                descriptor(("one", "order")),
                descriptor(("nowhere", "x")),
                descriptor(("free", "x")),
            )
            self.assertEqual(answer.overall_code, OVER_LIMIT)
            self.assertEqual([s.code for s in answer.statuses], [OK, OVER_LIMIT, OK, OK])
            self.assertEqual([s.current_limit.name for s in answer.statuses], ["Five", "One", "", ""])
            self.assertEqual([s.HasField("current_limit") for s in answer.statuses], [True, True, False, False])
            self.assertEqual(answer.statuses[0].limit_remaining, 5)

    def test_nested_descriptors_are_counted_together_and_only_in_full_depth(self):
        pair = (("user", "u"), ("path", "/a"))
        self.assertEqual(self.ask(descriptor(*pair)).overall_code, OK)
        self.assertEqual(self.ask(descriptor(*pair)).overall_code, OVER_LIMIT)
        self.assertEqual(self.ask(descriptor(("user", "u"), ("path", "/b"))).overall_code, OK)
        self.assertFalse(self.ask(descriptor(("user", "u"))).statuses[0].HasField("current_limit"))

    def test_hits_addend_of_the_request(self):
        self.assertEqual(self.ask(descriptor(("five", "hits")), hits_addend=3).statuses[0].limit_remaining, 2)
        denied = self.ask(descriptor(("five", "hits")), hits_addend=3)
        self.assertEqual((denied.overall_code, denied.statuses[0].limit_remaining), (OVER_LIMIT, 2))
        self.assertEqual(self.ask(descriptor(("five", "hits")), hits_addend=2).statuses[0].limit_remaining, 0)

    def test_hits_addend_of_a_descriptor_goes_before_that_of_the_request(self):
        answer = self.ask(
            descriptor(("five", "own"), hits_addend=UInt64Value(value=4)), descriptor(("five", "shared")), hits_addend=2
        )
        self.assertEqual([s.limit_remaining for s in answer.statuses], [1, 3])

    def test_a_limit_in_the_request_goes_before_the_policy(self):
        limit = RateLimitDescriptor.RateLimitOverride(requests_per_unit=1, unit=RateLimitUnit.YEAR)
        for code in (OK, OVER_LIMIT):
            status = self.ask(descriptor(("five", "override"), limit=limit)).statuses[0]
            self.assertEqual(status.code, code)
            self.assertEqual((status.current_limit.requests_per_unit, status.current_limit.unit), (1, RateLimit.YEAR))
        self.assertEqual(self.ask(descriptor(("five", "override"))).statuses[0].limit_remaining, 4)

    def test_the_same_key_twice_in_a_request_is_charged_the_sum(self):
        answer = self.ask(descriptor(("five", "twice")), descriptor(("five", "twice")))
        self.assertEqual({s.limit_remaining for s in answer.statuses}, {3})

    def test_many_callers_at_once_are_admitted_exactly_as_often_as_the_limit_says(self):
        request = RateLimitRequest(domain="test", descriptors=[descriptor(("per_team", "crowd"))])
        futures = [self.stub.ShouldRateLimit.future(request, timeout=30) for _ in range(1500)]
        codes = [future.result().overall_code for future in futures]
        self.assertEqual((codes.count(OK), codes.count(OVER_LIMIT)), (1000, 500))

    def test_public_report_67(self):
        for remaining in (4, 3, 2, 1, 0):
            status = self.ask(descriptor(("five", "67")), hits_addend=0).statuses[0]
            self.assertEqual((status.code, status.limit_remaining), (OK, remaining))
        for _ in range(2):
            status = self.ask(descriptor(("five", "67"), hits_addend=UInt64Value(value=0))).statuses[0]
            self.assertEqual((status.code, status.limit_remaining), (OK, 0))
        self.assertEqual(self.ask(descriptor(("five", "67")), hits_addend=1).overall_code, OVER_LIMIT)

    def test_public_report_68(self):
        answer = self.ask(descriptor(("five", "a")), descriptor(("one", "b")), domain="nowhere")
        self.assertEqual(answer.overall_code, OK)
        self.assertEqual([s.code for s in answer.statuses], [OK, OK])
        self.assertFalse(any(s.HasField("current_limit") for s in answer.statuses))

    def test_public_report_71(self):
        for n in range(6):
            answer = self.ask(descriptor(("free", "71")), descriptor(("five", "71")))
            expected = OK if n < 5 else OVER_LIMIT
            self.assertEqual(answer.overall_code, expected)
            self.assertEqual([s.code for s in answer.statuses], [OK, expected])
            self.assertEqual(answer.statuses[0].limit_remaining, 2**32 - 1)

    def test_public_report_72(self):
        def name_and_remaining(*entries):
            status = self.ask(descriptor(*entries)).statuses[0]
            return status.current_limit.name, status.limit_remaining

        for prefix, name in (((), "ApiWildcard"), ((("area", "shop"),), "ShopApi")):
            self.assertEqual(name_and_remaining(*prefix, ("path", "/api/feed")), (name, 1))
            self.assertEqual(name_and_remaining(*prefix, ("path", "/api/feed")), (name, 0))
            self.assertEqual(name_and_remaining(*prefix, ("path", "/api/x")), (name, 1))
        self.assertEqual(name_and_remaining(("area", "shop"), ("path", "/ap")), ("", 0))
        self.assertEqual(name_and_remaining(("path", "/ap")), ("AnyPath", 99))
        self.assertEqual(name_and_remaining(("path", "/api/exact")), ("ApiExact", 8))

    def test_public_report_73(self):
        day = 86400
        for key, length in (("month", 30 * day), ("week", 7 * day), ("year", 365 * day)):
            before = int(time.time())
            status = self.ask(descriptor((key, "73"))).statuses[0]
            after = int(time.time()) + 1
            allowed = range(length - after % length, length - before % length + 1)
            self.assertIn(status.duration_until_reset.seconds, allowed, key)

    def test_public_report_76(self):
        codes = []
        for _ in range(2):
            answer = self.ask(descriptor(("shadowed", "76")), descriptor(("one", "76")))
            codes.append((answer.overall_code, [s.code for s in answer.statuses]))
        self.assertEqual(codes, [(OK, [OK, OK]), (OVER_LIMIT, [OK, OVER_LIMIT])])


class Errors(Service):
    def test_an_empty_domain(self):
        details = self.assert_refused(grpc.StatusCode.INVALID_ARGUMENT, self.ask, descriptor(("five", "e")), domain="")
        self.assertIn("domain", details)

    def test_no_descriptors(self):
        self.assertIn("descriptor", self.assert_refused(grpc.StatusCode.INVALID_ARGUMENT, self.ask))

    def test_more_descriptors_than_a_request_may_have(self):
        many = [descriptor(("five", str(n))) for n in range(101)]
        self.assert_refused(grpc.StatusCode.INVALID_ARGUMENT, self.ask, *many)
        self.assertEqual(len(self.ask(*many[:100]).statuses), 100)

    def test_a_message_that_is_larger_than_allowed(self):
        self.assert_refused(grpc.StatusCode.RESOURCE_EXHAUSTED, self.ask, descriptor(("five", "x" * (64 * 1024))))
        self.assertEqual(self.ask(descriptor(("five", "x" * (32 * 1024)))).overall_code, OK)

    def test_bytes_that_are_no_message(self):
        call = self.channel.unary_unary(METHOD)
        self.assert_refused(grpc.StatusCode.INVALID_ARGUMENT, call, b"\xff\xff\xff\xff", timeout=30)

    def test_an_unknown_method_and_an_unknown_service(self):
        for path in ("/envoy.service.ratelimit.v3.RateLimitService/Nothing", "/no.such.Service/Method"):
            call = self.channel.unary_unary(path)
            self.assert_refused(grpc.StatusCode.UNIMPLEMENTED, call, b"", timeout=30)

    def test_a_compressed_message_is_refused_properly(self):
        request = RateLimitRequest(domain="test", descriptors=[descriptor(("five", "gzip" * 100))])
        self.assert_refused(
            grpc.StatusCode.UNIMPLEMENTED,
            self.stub.ShouldRateLimit,
            request,
            timeout=30,
            compression=grpc.Compression.Gzip,
        )

    def test_a_generous_deadline_is_kept(self):
        request = RateLimitRequest(domain="test", descriptors=[descriptor(("five", "deadline"))])
        for timeout in (3600, 1e6):
            self.assertEqual(self.stub.ShouldRateLimit(request, timeout=timeout).overall_code, OK)

    def test_the_connection_lives_on_after_every_error(self):
        self.assert_refused(grpc.StatusCode.INVALID_ARGUMENT, self.ask, domain="")
        self.assertEqual(self.ask(descriptor(("five", "lives"))).overall_code, OK)


@unittest.skipUnless(curl_support.BINARY and redis_support.BINARY, "no curl or no redis-server")
class Deadline(unittest.TestCase):
    """A store that accepts and never answers, given more time than the caller has."""

    def test_the_deadline_of_the_call_ends_it(self):
        with Redis() as redis:
            flags = ["--store.redis.url", redis.url, "--store.redis.timeout", "10s"]
            with Sluice(RATE_LIMIT_SERVICE, *flags) as sluice, grpc.insecure_channel(sluice.grpc) as channel:
                request = RateLimitRequest(domain="test", descriptors=[descriptor(("five", "deadline"))])
                stub = RateLimitServiceStub(channel)
                self.assertEqual(stub.ShouldRateLimit(request, timeout=30).overall_code, OK)
                redis.pause()
                self.addCleanup(redis.resume)
                with self.assertRaises(grpc.RpcError) as caught:
                    stub.ShouldRateLimit(request, timeout=0.2)
                self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
                self.assert_told_by_the_server(sluice, request.SerializeToString())
                redis.resume()
                self.assertEqual(stub.ShouldRateLimit(request, timeout=30).overall_code, OK)

    def assert_told_by_the_server(self, sluice, message):
        """grpcio ends the call itself; curl knows nothing of grpc-timeout, so it shows what the server does."""
        frame = b"\0" + len(message).to_bytes(4, "big") + message
        arguments = ["--http2-prior-knowledge"]
        for field in ("Content-Type: application/grpc", "TE: trailers", "grpc-timeout: 200m"):
            arguments += ["--header", field]
        answer = curl(f"http://{sluice.grpc}{METHOD}", *arguments, data=frame)
        self.assertEqual((answer.status, answer.one("grpc-status")), (200, "4"))


class Tokens(unittest.TestCase):
    def test_what_changes_counters_asks_for_a_token(self):
        tokens = Path(self.enterContext(tempfile.TemporaryDirectory())) / "tokens"
        tokens.write_text("ops let-me-in\n", encoding="utf-8")
        sluice = self.enterContext(Sluice(RATE_LIMIT_SERVICE, "--access.token_file", str(tokens)))
        channel = self.enterContext(grpc.insecure_channel(sluice.grpc))
        # sluice.v1.Limiter has domain and descriptors under the same numbers.
        request = RateLimitRequest(domain="test", descriptors=[descriptor(("five", "token"))])

        def call(method, token=None):
            metadata = [("authorization", f"Bearer {token}")] if token else []
            stub = channel.unary_unary(f"/sluice.v1.Limiter/{method}")
            return stub(request.SerializeToString(), timeout=30, metadata=metadata)

        self.assertEqual(RateLimitServiceStub(channel).ShouldRateLimit(request, timeout=30).overall_code, OK)
        call("Check")
        for token in (None, "let-me-out"):
            with self.assertRaises(grpc.RpcError) as caught:
                call("Reset", token)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
        self.assertIn(b"done", call("Reset", "let-me-in"))
        answer = RateLimitServiceStub(channel).ShouldRateLimit(request, timeout=30)
        self.assertEqual(answer.statuses[0].limit_remaining, 4)


class Health(Service):
    def check(self, service):
        """grpc.health.v1.Health/Check without its stubs: `service` is field 1, `status` is field 1 of the answer."""
        name = service.encode()
        request = bytes([0x0A, len(name)]) + name if name else b""
        return self.channel.unary_unary("/grpc.health.v1.Health/Check")(request, timeout=30)

    def test_serving(self):
        serving = b"\x08\x01"
        self.assertEqual(self.check(""), serving)
        self.assertEqual(self.check("envoy.service.ratelimit.v3.RateLimitService"), serving)

    def test_an_unknown_service(self):
        self.assert_refused(grpc.StatusCode.NOT_FOUND, self.check, "nobody")


class Stop(unittest.TestCase):
    def test_a_stopping_daemon_finishes_and_a_new_one_is_found_again(self):
        with Sluice(RATE_LIMIT_SERVICE) as sluice, grpc.insecure_channel(sluice.grpc) as channel:
            stub = RateLimitServiceStub(channel)
            request = RateLimitRequest(domain="test", descriptors=[descriptor(("five", "stop"))])
            self.assertEqual(stub.ShouldRateLimit(request, timeout=30).overall_code, OK)
            self.assertEqual(sluice.terminate(), 0)
            with self.assertRaises(grpc.RpcError) as caught:
                stub.ShouldRateLimit(request, timeout=30)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
            sluice.run()
            answer = stub.ShouldRateLimit(request, timeout=30, wait_for_ready=True)
            self.assertEqual(answer.statuses[0].limit_remaining, 4)


if __name__ == "__main__":
    unittest.main()
