"""TLS as people's clients speak it: curl, redis-cli, redis-py, grpcio, Envoy."""

import subprocess
import unittest

import grpc
import redis
from envoy.extensions.common.ratelimit.v3.ratelimit_pb2 import RateLimitDescriptor
from envoy.service.ratelimit.v3.rls_pb2 import RateLimitRequest, RateLimitResponse
from envoy.service.ratelimit.v3.rls_pb2_grpc import RateLimitServiceStub

from support.certificates import Certificates
from support.curl import curl
from support.daemon import Sluice
from support.envoy import EXAMPLE, Envoy, find_binary
from support.policies import RATE_LIMIT_SERVICE
from support.program import wait_until

REQUEST = RateLimitRequest(
    domain="test", descriptors=[RateLimitDescriptor(entries=[RateLimitDescriptor.Entry(key="five", value="x")])]
)


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.certificates = cls.enterClassContext(Certificates())

    def serve(self, *flags, policy=RATE_LIMIT_SERVICE):
        return self.enterContext(Sluice(policy, *flags))

    def read(self, name):
        with open(self.certificates.path(name), "rb") as file:
            return file.read()


class Http(Tls):
    def test_curl(self):
        sluice = self.serve(*self.certificates.flags("http", "admin"))
        for listener in ("http", "admin"):
            url = f"https://localhost:{sluice.ports[listener]}/healthcheck"
            self.assertEqual(curl(url, "--cacert", self.certificates.ca).status, 200)
            with self.assertRaisesRegex(RuntimeError, "certificate"):
                curl(url, "--cacert", self.certificates.path("others.crt"))
            with self.assertRaises(RuntimeError):
                curl(url, "--cacert", self.certificates.ca, "--tls-max", "1.1")

    def test_without_a_certificate_nobody_gets_in(self):
        sluice = self.serve(*self.certificates.flags("http", mutual=True))
        url = f"https://localhost:{sluice.ports['http']}/healthcheck"
        trust = ["--cacert", self.certificates.ca]
        cert, key = self.certificates.pair("client")
        self.assertEqual(curl(url, *trust, "--cert", cert, "--key", key).status, 200)
        with self.assertRaisesRegex(RuntimeError, "certificate required"):
            curl(url, *trust)
        cert, key = self.certificates.pair("stranger")
        with self.assertRaisesRegex(RuntimeError, "unknown ca"):
            curl(url, *trust, "--cert", cert, "--key", key)

    def test_a_token_or_a_certificate_lets_in(self):
        tokens = self.certificates.path("tokens")
        with open(tokens, "w", encoding="ascii") as file:
            file.write("ops let-me-in\n")
        flags = self.certificates.flags("admin", mutual=True) + ["--listen.admin.tls.client_cert", "optional"]
        sluice = self.serve("--access.token_file", tokens, *flags)
        url = f"https://localhost:{sluice.ports['admin']}/metrics"
        trust = ["--cacert", self.certificates.ca]
        cert, key = self.certificates.pair("client")
        self.assertEqual(curl(url, *trust).status, 401)
        self.assertEqual(curl(url, *trust, "--header", "Authorization: Bearer let-me-out").status, 401)
        self.assertEqual(curl(url, *trust, "--header", "Authorization: Bearer let-me-in").status, 200)
        self.assertEqual(curl(url, *trust, "--cert", cert, "--key", key).status, 200)
        question = {"domain": "test", "descriptors": [{"one": "x"}]}
        self.assertEqual(curl(sluice.url("/v1/check"), data=question).status, 200)
        self.assertEqual(curl(sluice.url("/v1/reset"), data=question).status, 401)
        self.assertEqual(
            curl(sluice.url("/v1/reset"), "--header", "Authorization: Bearer let-me-in", data=question).status, 200
        )
        with open(tokens, "w", encoding="ascii") as file:
            file.write("ops another-one\n")
        wait_until(
            lambda: curl(url, *trust, "--header", "Authorization: Bearer another-one").status == 200, "the new token"
        )
        self.assertEqual(curl(url, *trust, "--header", "Authorization: Bearer let-me-in").status, 401)


class Resp(Tls):
    def setUp(self):
        self.port = self.serve("--listen.resp", "127.0.0.1:0", *self.certificates.flags("resp", mutual=True)).ports["resp"]
        self.cert, self.key = self.certificates.pair("client")

    def test_redis_cli_and_benchmark(self):
        trust = ["-p", str(self.port), "--tls", "--cacert", self.certificates.ca]
        own = ["--cert", self.cert, "--key", self.key]
        run = subprocess.run(
            ["redis-cli", *trust, *own, "CL.THROTTLE", "cli", "15", "30", "60"], capture_output=True, text=True, timeout=60, check=True
        )
        self.assertEqual(run.stdout.split(), ["0", "16", "15", "-1", "2"])
        run = subprocess.run(["redis-cli", *trust, "PING"], capture_output=True, text=True, timeout=60, check=False)
        self.assertNotIn("PONG", run.stdout)
        command = ["redis-benchmark", *trust, *own, "-n", "20000", "-P", "16", "-q", "CL.THROTTLE", "b", "15", "30", "60"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        self.assertIn("requests per second", run.stdout)

    def test_redis_py(self):
        options = {"port": self.port, "ssl": True, "ssl_ca_certs": self.certificates.ca}
        with redis.Redis(**options, ssl_certfile=self.cert, ssl_keyfile=self.key) as client:
            self.assertTrue(client.ping())
            pipeline = client.pipeline(transaction=False)
            for _ in range(5000):
                pipeline.execute_command("CL.THROTTLE", "piped", 9, 1, 86400)
            self.assertEqual(sum(reply[0] == 0 for reply in pipeline.execute()), 10)
        with self.assertRaises((redis.ConnectionError, OSError)):
            redis.Redis(**options).ping()


class Grpc(Tls):
    def test_grpcio(self):
        sluice = self.serve(*self.certificates.flags("grpc", mutual=True))
        address = f"localhost:{sluice.ports['grpc']}"
        mine = grpc.ssl_channel_credentials(self.read("ca.crt"), self.read("client.key"), self.read("client.crt"))
        with grpc.secure_channel(address, mine) as channel:
            stub = RateLimitServiceStub(channel)
            codes = [stub.ShouldRateLimit(REQUEST, timeout=30).overall_code for _ in range(6)]
        self.assertEqual(codes, [RateLimitResponse.OK] * 5 + [RateLimitResponse.OVER_LIMIT])
        for credentials in (grpc.ssl_channel_credentials(self.read("ca.crt")), None):
            channel = grpc.secure_channel(address, credentials) if credentials else grpc.insecure_channel(address)
            with channel, self.assertRaises(grpc.RpcError) as caught:
                RateLimitServiceStub(channel).ShouldRateLimit(REQUEST, timeout=30)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)

    @unittest.skipUnless(find_binary(), "no Envoy")
    def test_envoy(self):
        sluice = self.serve(*self.certificates.flags("grpc", mutual=True), policy=EXAMPLE / "policy.yaml")
        cert, key = self.certificates.pair("client")
        tls = f"""
      transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
          sni: localhost
          common_tls_context:
            tls_certificates: [ {{ certificate_chain: {{ filename: {cert} }}, private_key: {{ filename: {key} }} }} ]
            validation_context: {{ trusted_ca: {{ filename: {self.certificates.ca} }} }}
      load_assignment:
        cluster_name: sluice
"""
        plain = "\n      load_assignment:\n        cluster_name: sluice\n"
        with Envoy(sluice.ports["grpc"], {plain: tls}) as envoy:
            self.assertEqual(curl(envoy.url("/"), "--header", "x-api-key: a").status, 200)
            wait_until(lambda: curl(envoy.url("/"), "--header", "x-api-key: a").status == 429, "the sixth call is denied")
            self.assertGreaterEqual(envoy.counter("cluster.sluice.ssl.handshake"), 1)


if __name__ == "__main__":
    unittest.main()
