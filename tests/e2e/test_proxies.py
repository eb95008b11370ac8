"""Real proxies with the configurations of examples/proxies ask the daemon before each request."""

import contextlib
import json
import tempfile
import time
import unittest

from support.curl import curl
from support.daemon import Sluice
from support.program import pause, wait_until
from support.proxy import EXAMPLES, App, Proxy
from support.redis import Redis

POLICY = (EXAMPLES / "policy.yaml").read_text(encoding="utf-8")
# So that the tests' own address is not what is counted.
WITHOUT_ADDRESS = POLICY.replace("    - actions: [{ remote_address: {} }]\n", "")
WITH_403 = WITHOUT_ADDRESS.replace("requests:\n", "requests:\n  deny_status: 403\n")
FAILS_CLOSED = WITHOUT_ADDRESS.replace("      burst: 3\n", "      burst: 3\n      on_store_failure: deny\n")
BY_COOKIE = """
domain: edge
descriptors:
  - key: session
    rate_limit: { name: PerSession, unit: hour, requests_per_unit: 60, algorithm: token_bucket, burst: 3 }
requests:
  rate_limits:
    - actions: [{ cookie: { name: session } }]
"""
BY_TOKEN = """
domain: edge
descriptors:
  - key: user
    rate_limit: { name: PerUser, unit: hour, requests_per_unit: 60, algorithm: token_bucket, burst: 3 }
requests:
  jwt: { algorithms: [HS256], secret_file: SECRET }
  rate_limits:
    - actions: [{ jwt_claim: { claim: sub, descriptor_key: user } }]
"""
WITH_204 = WITHOUT_ADDRESS.replace("requests:\n", "requests:\n  allow_status: 204\n")
WITHOUT_REQUESTS = POLICY[: POLICY.index("requests:\n")]
NEVER_FITS = WITHOUT_ADDRESS.replace("requests:\n", "requests:\n  cost: 5\n")
BY_HOST = """
domain: edge
descriptors:
  - key: host
    rate_limit: { name: PerHost, unit: hour, requests_per_unit: 60, algorithm: token_bucket, burst: 2 }
requests:
  rate_limits:
    - actions: [{ request_headers: { header_name: ":authority", descriptor_key: host } }]
"""
HELD = """
domain: edge
descriptors:
  - key: key
    rate_limit: { name: Held, period: 1s, requests_per_unit: 2, algorithm: leaky_bucket, queue: 3, delay: hold }
requests:
  rate_limits:
    - actions: [{ request_headers: { header_name: x-api-key, descriptor_key: key } }]
"""

UPGRADE = [b"Upgrade: websocket", b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
CHUNKED = {"method": "POST", "body": b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"}
# What a client could send to make the question fail, or to be judged as somebody else: name, fields, the rest.
ODD_REQUESTS = [
    ("a compressed body", [b"Content-Encoding: gzip", b"Content-Length: 1"], {"method": "POST", "body": b"x"}),
    ("Content-Encoding without a body", [b"Content-Encoding: gzip"], {}),
    ("a hundred fields", [b"a%d: b" % n for n in range(96)], {}),
    ("a hundred lines of one field", [b"Accept: a/b"] * 96, {}),
    ("a hundred cookies", [b"Cookie: a=b"] * 96, {}),
    ("150 fields", [b"a%d: b" % n for n in range(150)], {}),
    ("150 lines of a field that is passed on", [b"Accept: a/b"] * 150, {}),
    ("a control byte", [b"X-Any: a\x01b"], {}),
    ("a control byte in a field that is passed on", [b"Accept: a\x01b"], {}),
    ("DEL", [b"Cookie: a=\x7f"], {}),
    ("bytes beyond ASCII", [b"Accept: \xff"], {}),
    ("no name", [b": b"], {}),
    ("a folded line", [b"Accept: a/b", b" c/d"], {}),
    ("an expectation", [b"Expect: x"], {}),
    ("TE", [b"TE: trailers"], {}),
    ("a coding", [b"Transfer-Encoding: gzip, chunked"], CHUNKED),
    ("a chunked upload", [b"Transfer-Encoding: chunked"], CHUNKED),
    ("two lengths", [b"Content-Length: 0", b"Content-Length: 0"], {}),
    ("a websocket", UPGRADE, {}),
    ("the proxy's own fields", [b"X-Original-Method: \x01", b"X-Original-URI: /x", b"X-Forwarded-Uri: /x"], {}),
    ("their names in Connection", [b"Connection: X-Original-URI, X-Forwarded-Uri, X-Forwarded-For"], {}),
    ("many addresses", [b"X-Forwarded-For: 192.0.2.1"] * 90, {}),
    ("16 KiB in one field", [b"Cookie: a=" + b"x" * 14400], {}),
    ("16 KiB in one field, and a little more", [b"Cookie: a=" + b"x" * 15000], {}),
    ("24 KiB of cookies", [b"Cookie: a=" + b"x" * 7000] * 3, {}),
    ("64 KiB in many fields", [b"a%d: " % n + b"x" * 900 for n in range(72)], {}),
    ("64 KiB of what is passed on", [b"Accept: " + b"x" * 900] * 72, {}),
    ("a path of 7 KiB", [], {"path": "/" + "a" * 7500}),
    ("a path of 14 KiB", [], {"path": "/" + "a" * 14000}),
    ("a long path and a cookie", [b"Cookie: a=" + b"x" * 8000], {"path": "/" + "a" * 7000}),
    ("UTF-8 in the path", [], {"path": "/\xe6\x97\xa5"}),
    ("a control byte in the path", [], {"path": "/a\x01"}),
    ("an escaped slash", [], {"path": "/a%2Fb%2f"}),
    ("an escaped NUL", [], {"path": "/%00"}),
    ("a wrong escape", [], {"path": "/%zz"}),
    ("quotes in the path", [], {"path": '/"<>'}),
    ("the absolute form", [], {"path": "http://other/"}),
    ("HEAD", [], {"method": "HEAD"}),
    ("OPTIONS", [], {"method": "OPTIONS"}),
    ("OPTIONS *", [], {"method": "OPTIONS", "path": "*"}),
    ("CONNECT", [], {"method": "CONNECT", "path": "other:80"}),
    ("TRACE", [], {"method": "TRACE"}),
    ("a method of its own", [], {"method": "PUTT"}),
]


class Cases:
    """What is the same for all; each proxy's class says what it can."""

    name = None
    paths = ["/"]  # each of the ways that its configuration has
    shows_fields_when_allowed = True
    passes_on_the_body = True
    when_sluice_is_gone = 200
    when_sluice_hangs = 200  # None: it waits
    when_the_store_fails = 503
    when_the_policy_says_403 = 429
    when_sluice_says_204 = 200
    # What Sluice cannot read, though the proxy passes it on, and the status at "/".
    unreadable, when_sluice_cannot_read = [b"Cookie: a=b"] * 96, 431

    @classmethod
    def setUpClass(cls):
        cls.app = cls.enterClassContext(App())
        cls.sluice = cls.enterClassContext(Sluice(WITHOUT_ADDRESS))
        cls.proxy = cls.enterClassContext(Proxy(cls.name, cls.sluice.ports["http"], cls.app.port))

    def ask(self, path, key, *arguments, data=None):
        return curl(self.proxy.url(path), "--header", f"x-api-key: {key}", *arguments, data=data)

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

    @contextlib.contextmanager
    def behind(self, policy, *flags, **options):
        """Another Sluice, and the proxy before it."""
        with Sluice(policy, *flags) as sluice:
            with Proxy(self.name, sluice.ports["http"], self.app.port, **options) as proxy:
                yield sluice, proxy

    def assert_refused(self, answer, status=None):
        self.assertIsNotNone(answer)
        self.assertGreaterEqual(answer.status, 400, answer)
        if status is not None:
            self.assertEqual(answer.status, status, answer)

    def test_nothing_odd_leads_around_the_limit(self):
        for path in self.paths:
            key = f"worn at {path}"
            self.assertEqual([self.ask(path, key).status for _ in range(4)], [200, 200, 200, 429])
            for name, fields, rest in ODD_REQUESTS:
                rest = {**rest, "path": path.rstrip("/") + rest.get("path", "/")} if len(path) > 1 else rest
                seen = len(self.app.seen)
                with self.subTest(name, path=path):
                    answer = self.proxy.send([*fields, b"X-Api-Key: " + key.encode()], **rest)
                    self.assertEqual(self.app.seen[seen:], [], answer)
            # The proxy is well, and still asks.
            self.assertEqual(self.ask(path, key).status, 429)
            self.assertEqual(self.ask(path, f"fresh at {path}").status, 200)

    def test_what_is_uncommon_but_right_passes_and_is_counted(self):
        for path in self.paths:
            key = f"uncommon at {path}"
            head = self.ask(path, key, "--head")
            self.assertEqual((head.status, self.app.seen[-1]), (200, ("HEAD", path)))
            sent = self.proxy.send(
                [b"Transfer-Encoding: chunked", b"Content-Encoding: gzip", b"X-Api-Key: " + key.encode()],
                **CHUNKED,
                path=f"{path}a%2Fb/%E6%97%A5?%2f",
            )
            self.assertIsNotNone(sent)
            self.assertEqual((sent.status, self.app.seen[-1]), (200, ("POST", f"{path}a%2Fb/%E6%97%A5?%2f")), sent)
            self.assertEqual((self.app.body, self.app.fields["Content-Encoding"]), (b"abcde", "gzip"))
            upgrade = self.proxy.send([*UPGRADE, b"X-Api-Key: " + key.encode()], path=path)
            self.assertEqual((upgrade.status, self.app.seen[-1]), (200, ("GET", path)))
            self.assertEqual(self.ask(path, key, "--head").status, 429)
            seen = len(self.app.seen)
            self.assertEqual(self.ask(path, key, data="x" * 100_000).status, 429)
            self.assertEqual(len(self.app.seen), seen)
            self.assertEqual(self.ask(path, f"other {key}", data="x" * 100_000).status, 200)
            self.assertEqual(len(self.app.body), 100_000)

    def test_a_cookie_is_found_in_whichever_line(self):
        with self.behind(BY_COOKIE) as (_, proxy):
            for n, path in enumerate(self.paths):
                mine = b"Cookie: session=%d" % n
                for fields in ([mine], [b"Cookie: a=b", mine], [mine, b"Cookie: a=b", b"Cookie: c=d"]):
                    self.assertEqual(proxy.send(fields, path=path).status, 200, fields)
                for fields in ([mine], [b"Cookie: a=b", mine], [b"Cookie: a=b", b"Cookie: c=d; e=f", mine]):
                    self.assertEqual(proxy.send(fields, path=path).status, 429, fields)

    def test_who_does_not_say_who_it_is_gets_401_with_a_challenge(self):
        secret = self.enterContext(tempfile.NamedTemporaryFile())
        secret.write(b"0123456789abcdef0123456789abcdef")
        secret.flush()
        with self.behind(BY_TOKEN.replace("SECRET", secret.name)) as (_, proxy):
            seen = len(self.app.seen)
            for path in self.paths:
                for fields in ([], [b"Authorization: Bearer x"]):
                    answer = proxy.send(fields, path=path)
                    self.assert_refused(answer, 401)
                    self.assertTrue(answer.one("WWW-Authenticate").startswith("Bearer"), answer)
            self.assertEqual(len(self.app.seen), seen)

    def test_a_policy_that_denies_by_403_limits(self):
        with self.behind(WITH_403) as (_, proxy):
            for path in self.paths:
                codes = [proxy.send([f"X-Api-Key: {path}".encode()], path=path).status for _ in range(4)]
                self.assertEqual(codes, [200] * 3 + [self.when_the_policy_says_403])

    def test_what_never_fits_is_denied_without_a_time(self):
        with self.behind(NEVER_FITS) as (_, proxy):
            for path in self.paths:
                denied = curl(proxy.url(path), "--header", "x-api-key: k")
                self.assertEqual((denied.status, denied.one("Retry-After")), (429, None))
                self.assertIsNone(json.loads(denied.body).get("retry_after"))

    def test_a_held_request_waits_where_the_time_out_is_longer(self):
        with self.behind(HELD) as (_, proxy):
            for path in self.paths:
                begin = time.monotonic()
                for _ in range(3):
                    self.assertEqual(curl(proxy.url(path), "--header", f"x-api-key: {path}").status, 200)
                self.assertGreater(time.monotonic() - begin, 0.9)

    def test_a_key_in_two_lines_counts_as_the_first(self):
        worn, fresh = b"X-Api-Key: twice", b"X-Api-Key: %s" % self.name.encode()
        self.assertEqual([self.proxy.send([worn]).status for _ in range(4)], [200, 200, 200, 429])
        seen = len(self.app.seen)
        self.assert_refused(self.proxy.send([worn, fresh]))
        self.assertEqual(len(self.app.seen), seen)

    def refusals_while_the_store_hangs(self, *flags, **options):
        """The statuses at each path; nothing may come to the application."""
        redis = self.enterContext(Redis())
        flags = ["--store.redis.url", redis.url, "--store.redis.timeout", "100ms", *flags]
        with self.behind(FAILS_CLOSED, *flags, **options) as (sluice, proxy):
            ask = {"domain": "edge", "descriptors": [{"key": "any"}]}
            wait_until(lambda: curl(sluice.url("/v1/check"), data=ask).json["source"] == "redis", "on Redis")
            redis.pause()
            seen = len(self.app.seen)
            answers = {path: [proxy.send([b"X-Api-Key: k"], path=path) for _ in range(8)] for path in self.paths}
            redis.resume()
            self.assertEqual(self.app.seen[seen:], [])
            return {path: {answer.status for answer in found} for path, found in answers.items()}

    def test_what_fails_closed_does_so_behind_the_proxy(self):
        told = self.refusals_while_the_store_hangs()
        self.assertEqual(told.pop("/"), {self.when_the_store_fails})
        for statuses in told.values():
            self.assertGreaterEqual(min(statuses), 500)

    def test_what_sluice_cannot_read_or_judge_is_refused(self):
        seen = len(self.app.seen)
        told = {path: self.proxy.send(self.unreadable, path=path).status for path in self.paths}
        self.assertEqual(told, {"/": self.when_sluice_cannot_read, **dict.fromkeys(self.paths[1:], 500)})
        with self.behind(WITHOUT_REQUESTS) as (_, proxy):
            told = {path: proxy.send([], path=path).status for path in self.paths}
            self.assertEqual(told, {"/": 503, **dict.fromkeys(self.paths[1:], 500)})
        self.assertEqual(len(self.app.seen), seen)

    def test_204_passes(self):
        with self.behind(WITH_204) as (_, proxy):
            for path in self.paths:
                seen = len(self.app.seen)
                self.assertEqual(curl(proxy.url(path)).status, self.when_sluice_says_204)
                self.assertEqual(len(self.app.seen) - seen, self.when_sluice_says_204 == 200)

    def test_what_comes_when_sluice_is_gone_or_hangs(self):
        with self.behind(WITHOUT_ADDRESS, hasty=True) as (sluice, proxy):
            wait_until(lambda: curl(proxy.url("/")).status == 200, "passes")
            if self.when_sluice_hangs:
                pause(sluice.process)
                self.assertEqual([curl(proxy.url("/")).status for _ in range(2)], [self.when_sluice_hangs] * 2)
                for path in self.paths[1:]:
                    self.assertEqual(curl(proxy.url(path)).status, 500)
            sluice.kill()
            for _ in range(3):
                begin = time.monotonic()
                self.assertEqual(curl(proxy.url("/"), data="x").status, self.when_sluice_is_gone)
                self.assertLess(time.monotonic() - begin, 10)
            for path in self.paths[1:]:
                self.assertEqual(curl(proxy.url(path)).status, 500)
            sluice.run()
            for path in self.paths:
                wait_until(lambda path=path: proxy.send([b"X-Api-Key: back"], path=path).status == 429, "counts again")


class AsksByARequestOfItsOwn:
    """Proxies whose question has another host than the request, if that is not changed as a comment says."""

    def test_the_host_is_told_where_a_comment_says_how(self):
        changes = {f"{self.comment} For a policy that looks at the host: ": ""}
        with self.behind(BY_HOST, changes=changes) as (_, proxy):
            for host in ("a.example", "b.example"):
                codes = [curl(proxy.url("/"), "--header", f"Host: {host}").status for _ in range(3)]
                self.assertEqual(codes, [200, 200, 429])


class Nginx(AsksByARequestOfItsOwn, Cases, unittest.TestCase):
    name = "nginx"
    comment = "#"
    paths = ["/", "/second/"]
    passes_on_the_body = False  # auth_request has no way
    unreadable, when_sluice_cannot_read = [b"Cookie: a=\x7f"], 503

    def test_an_upload_that_the_location_allows_is_counted(self):
        changes = {"location / {": "location / {\n client_max_body_size 8m;"}
        upload = "x" * 2_000_000
        with self.behind(WITHOUT_ADDRESS, changes=changes) as (_, proxy):
            codes = [curl(proxy.url("/"), "--header", "x-api-key: k", data=upload).status for _ in range(4)]
            self.assertEqual(codes, [200, 200, 200, 429])

    def test_the_last_of_several_tries_counts(self):
        changes = {"upstream sluice {": "upstream sluice { server 127.0.0.1:1 max_fails=0;"}
        with self.behind(WITHOUT_ADDRESS, changes=changes) as (_, proxy):
            codes = [proxy.send([b"X-Api-Key: k"]).status for _ in range(8)]
            self.assertEqual(codes, [200] * 3 + [429] * 5)

    def test_the_application_sees_the_key_that_was_counted(self):
        for path in self.paths:
            fields = [b"X-Api-Key: one", b"X-Api-Key: two", b"Authorization: Bearer one"]
            self.assertEqual(self.proxy.send(fields, path=path).status, 200)
            # nginx 1.23 and newer join the lines, for both.
            self.assertIn(self.app.fields.get_all("X-Api-Key"), (["one"], ["one, two"]))
            self.assertEqual(self.app.fields.get_all("Authorization"), ["Bearer one"])


class HaProxy(AsksByARequestOfItsOwn, Cases, unittest.TestCase):
    name = "haproxy"
    comment = "--"
    unreadable, when_sluice_cannot_read = [b"Cookie: a=\x7f"], 503

    def test_a_key_or_token_in_two_lines_is_refused(self):
        for name in (b"X-Api-Key", b"Authorization"):
            self.assert_refused(self.proxy.send([name + b": one", name + b": two"]), 400)

    def test_refuses_without_sluice_where_that_is_chosen(self):
        lines = ("var(txn.limits_unreachable) -m bool", "nbsrv(sluice) eq 0")
        changes = {f"  acl unreachable {line}\n": "" for line in lines} | {"!answered !unreachable": "!answered"}
        with self.behind(WITHOUT_ADDRESS, changes=changes) as (sluice, proxy):
            self.assertEqual(curl(proxy.url("/")).status, 200)
            sluice.kill()
            self.assertEqual(curl(proxy.url("/")).status, 503)

    def test_an_error_of_the_script_refuses(self):
        with self.behind(WITHOUT_ADDRESS, changes={"txn.sf:method()": "txn.sf:method() .. nil"}) as (_, proxy):
            seen = len(self.app.seen)
            self.assertEqual(curl(proxy.url("/")).status, 503)
            self.assertEqual(len(self.app.seen), seen)


class Caddy(Cases, unittest.TestCase):
    name = "caddy"
    when_sluice_hangs = 504
    when_sluice_is_gone = 502


class Traefik(Cases, unittest.TestCase):
    name = "traefik"
    shows_fields_when_allowed = False
    when_sluice_is_gone = 500
    when_sluice_hangs = None


class Envoy(Cases, unittest.TestCase):
    name = "envoy"
    when_sluice_is_gone = when_sluice_hangs = 503
    when_the_policy_says_403 = 403  # no parameter can be given
    when_sluice_says_204 = 204  # its answer, not the application's

    def test_what_fails_closed_does_so_where_requests_pass_without_sluice(self):
        changes = {"failure_mode_allow: false": "failure_mode_allow: true"}
        flags = ["--http.store_failure_status", "429"]
        self.assertEqual(self.refusals_while_the_store_hangs(*flags, changes=changes), {"/": {429}})
        with self.behind(WITHOUT_ADDRESS, changes=changes) as (sluice, proxy):
            sluice.kill()
            self.assertEqual(curl(proxy.url("/")).status, 200)


if __name__ == "__main__":
    unittest.main()
