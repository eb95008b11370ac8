"""Real proxies with the configurations of examples/proxies ask the daemon before each request."""

import json
import time
import unittest

from support.curl import curl
from support.daemon import Sluice
from support.proxy import EXAMPLES, App, Proxy

POLICY = (EXAMPLES / "policy.yaml").read_text(encoding="utf-8")
# So that the tests' own address is not what is counted.
WITHOUT_ADDRESS = POLICY.replace("    - actions: [{ remote_address: {} }]\n", "")


class Cases:
    """What is the same for all; each proxy's class says what it can."""

    name = None
    paths = ["/"]  # each of the ways that its configuration has
    shows_fields_when_allowed = True
    passes_on_the_body = True
    when_sluice_is_gone = 200

    @classmethod
    def setUpClass(cls):
        cls.app = cls.enterClassContext(App())
        cls.sluice = cls.enterClassContext(Sluice(WITHOUT_ADDRESS))
        cls.proxy = cls.enterClassContext(Proxy(cls.name, cls.sluice.ports["http"], cls.app.port))

    def ask(self, path, key, *arguments):
        return curl(self.proxy.url(path), "--header", f"x-api-key: {key}", *arguments)

    def test_passes_up_to_the_limit_and_then_answers_429_with_all_fields(self):
        for path in self.paths:
            key = f"key of {path}"
            for remaining in ("2", "1", "0"):
                answer = self.ask(f"{path}a?b=c", key)
                self.assertEqual((answer.status, answer.body), (200, f"app GET {path}a?b=c\n"))
                if self.shows_fields_when_allowed:
                    self.assertIn(f'"PerKey";r={remaining}', answer.one("RateLimit"))
                    self.assertIn('"PerKey";q=3;w=180', answer.one("RateLimit-Policy"))
            seen = len(self.app.seen)
            denied = self.ask(f"{path}a?b=c", key)
            self.assertEqual(denied.status, 429, denied)
            self.assertEqual(len(self.app.seen), seen)
            # One token comes in a minute.
            self.assertIn(int(denied.one("Retry-After")), range(30, 61))
            self.assertIn('"PerKey";r=0', denied.one("RateLimit"))
            self.assertIn('"PerKey";q=3', denied.one("RateLimit-Policy"))
            self.assertTrue(denied.one("Content-Type").startswith("application/json"))
            told = json.loads(denied.body)
            self.assertEqual(told["retry_after"], int(denied.one("Retry-After")))
            message = "too many requests with this key" if self.passes_on_the_body else "rate limit exceeded"
            self.assertTrue(told["msg"].startswith(message), told)
            self.assertEqual(self.ask(f"{path}a", f"another {path}").status, 200)

    def test_the_clients_method_and_path_are_judged(self):
        codes = [curl(self.proxy.url("/upload?n=1"), data="x").status for _ in range(3)]
        self.assertEqual(codes, [200, 200, 429])
        # Neither another spelling nor fields of the client's own lead around it.
        for arguments in (
            ["--header", "X-Forwarded-Uri: /other"],
            ["--header", "X-Forwarded-Uri: /other", "--header", "X-Forwarded-Method: GET"],
            ["--header", "X-Original-URI: /other", "--header", "X-Original-Method: GET"],
            ["--header", "X-Original-URL: /other"],
        ):
            self.assertEqual(curl(self.proxy.url("/upload"), *arguments, data="x").status, 429, arguments)
        self.assertEqual(curl(self.proxy.url("/%75pload//"), data="x").status, 429)
        self.assertEqual(curl(self.proxy.url("/other"), data="x").status, 200)

    def test_the_clients_address_is_counted_whatever_it_says_of_itself(self):
        # 127.0.0.0/8 is trusted in the example, so that here the client is not: only its own proxy is.
        policy = POLICY.replace("[127.0.0.0/8,", "[127.0.0.1/32,")
        with Sluice(policy) as sluice, Proxy(self.name, sluice.ports["http"], self.app.port) as proxy:
            forged = [f"X-Forwarded-For: 198.51.100.{n}" for n in range(4)] + ["Forwarded: for=1.1.1.1", "X-Real-IP: 1.1.1.1"]
            codes = [curl(proxy.url("/"), "--interface", "127.0.0.2", "--header", field).status for field in forged]
            self.assertEqual(codes, [200] * 5 + [429])
            self.assertEqual(curl(proxy.url("/"), "--interface", "127.0.0.3").status, 200)

    def test_what_comes_when_sluice_is_gone_or_hangs(self):
        with Sluice(WITHOUT_ADDRESS) as sluice, Proxy(self.name, sluice.ports["http"], self.app.port) as proxy:
            self.assertEqual(curl(proxy.url("/")).status, 200)
            sluice.kill()
            for _ in range(3):
                begin = time.monotonic()
                self.assertEqual(curl(proxy.url("/")).status, self.when_sluice_is_gone)
                self.assertLess(time.monotonic() - begin, 10)


class Nginx(Cases, unittest.TestCase):
    name = "nginx"
    paths = ["/", "/second/"]
    passes_on_the_body = False  # auth_request has no way


class HaProxy(Cases, unittest.TestCase):
    name = "haproxy"


class Caddy(Cases, unittest.TestCase):
    name = "caddy"
    when_sluice_is_gone = 502


class Traefik(Cases, unittest.TestCase):
    name = "traefik"
    shows_fields_when_allowed = False
    when_sluice_is_gone = 500


class Envoy(Cases, unittest.TestCase):
    name = "envoy"


if __name__ == "__main__":
    unittest.main()
