"""Every HTTP path by curl."""

import json
import math
import re
import time
import unittest

from support.curl import curl
from support.daemon import Sluice
from support.pipeline import post_at_once
from support.policies import RATE_LIMIT_SERVICE


class Http(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sluice = cls.enterClassContext(Sluice(RATE_LIMIT_SERVICE))

    def check(self, *descriptors, arguments=(), domain="test", **fields):
        body = {"domain": domain, "descriptors": list(descriptors), **fields}
        return curl(self.sluice.url("/v1/check"), *arguments, data=body)

    def json(self, *descriptors, domain="test", **fields):
        """POST /json; descriptors as lists of (key, value)."""
        return curl(self.sluice.url("/json"), data=rls_request(*descriptors, domain=domain, **fields))


def rls_request(*descriptors, domain="test", **fields):
    entries = [{"entries": [{"key": k, "value": v} for k, v in d]} if isinstance(d, list) else d for d in descriptors]
    return {"domain": domain, "descriptors": entries, **fields}


class Check(Http):
    def test_allowed_and_denied(self):
        for remaining in (1, 0):
            answer = self.check({"two": "a"})
            self.assertEqual(answer.status, 200)
            self.assertEqual(answer.one("Content-Type"), "application/json")
            self.assertIsNone(answer.one("Retry-After"))
            self.assertEqual(answer.one("X-RateLimit-Limit"), "2")
            self.assertEqual(answer.one("X-RateLimit-Remaining"), str(remaining))
            verdict = answer.json
            self.assertEqual((verdict["allowed"], verdict["limit"], verdict["remaining"]), (True, 2, remaining))

        answer = self.check({"two": "a"})
        self.assertEqual(answer.status, 429)
        verdict = answer.json
        self.assertEqual((verdict["allowed"], verdict["reason"], verdict["remaining"]), (False, "over_limit", 0))
        self.assertEqual(verdict["retry_after"], verdict["reset_after"])
        self.assertEqual(answer.one("Retry-After"), str(math.ceil(verdict["retry_after"])))
        self.assertEqual(answer.one("X-RateLimit-Reset"), answer.one("Retry-After"))
        self.assertEqual(answer.one("RateLimit"), f'"two";r=0;t={answer.one("Retry-After")}')
        self.assertEqual(answer.one("RateLimit-Policy"), f'"two";q=2;w={365 * 86400}')

    def test_names_the_limit_that_decided(self):
        self.check({"one": "n"})
        verdict = self.check({"five": "n"}, {"one": "n"}).json
        self.assertEqual((verdict["allowed"], verdict["limit_name"]), (False, "One"))
        each = [(one["limit_name"], one["allowed"], one["remaining"]) for one in verdict["descriptors"]]
        self.assertEqual(each, [("Five", True, 5), ("One", False, 0)])

    def test_cost_of_the_request_and_of_a_descriptor(self):
        self.assertEqual(self.check({"five": "cost"}, cost=3).json["remaining"], 2)
        self.assertEqual(self.check({"five": "cost"}, cost=3).status, 429)
        self.assertEqual(self.check({"entries": {"five": "cost"}, "cost": 2}, cost=3).json["remaining"], 0)

    def test_cost_0_looks_without_taking(self):
        for _ in range(7):
            answer = self.check({"five": "look"}, cost=0)
            self.assertEqual((answer.status, answer.json["remaining"]), (200, 5))

    def test_a_cost_that_can_never_fit(self):
        answer = self.check({"bucket": "never"}, cost=4)
        self.assertEqual((answer.status, answer.json["reason"]), (429, "never_fits"))
        self.assertIsNone(answer.json["retry_after"])
        self.assertIsNone(answer.one("Retry-After"))
        self.assertEqual(self.check({"bucket": "never"}, cost=3).status, 200)

    def test_an_array_of_requests(self):
        one = {"domain": "test", "descriptors": [{"two": "array"}]}
        answer = curl(self.sluice.url("/v1/check"), data=[one, one, one])
        self.assertEqual(answer.status, 200)
        self.assertEqual([verdict["allowed"] for verdict in answer.json], [True, True, False])

    def test_a_problem_document_on_request(self):
        accept = ["--header", "Accept: application/problem+json"]
        self.assertEqual(self.check({"one": "problem"}, arguments=accept).one("Content-Type"), "application/json")
        answer = self.check({"one": "problem"}, arguments=accept)
        self.assertEqual((answer.status, answer.one("Content-Type")), (429, "application/problem+json"))
        self.assertEqual((answer.json["status"], answer.json["violated-policies"]), (429, ["One"]))

    def test_what_is_not_a_request_is_refused_with_its_place(self):
        for body, code, word in (
            ("", "invalid_json", "line 1, column 1"),
            ("{", "invalid_json", "line 1, column 2"),
            ("{}", "invalid_request", "domain"),
            ('{"domain":"test"}', "invalid_request", "descriptors"),
            ('{"domain":"test","descriptors":[]}', "invalid_request", "empty"),
            ('{"domain":"","descriptors":[{"five":"x"}]}', "invalid_request", "domain"),
            ('{"domain":"test","descriptors":[{"five":5}]}', "invalid_request", "string"),
            ('{"domain":"test","descriptors":[{"five":"x"}],"cots":1}', "invalid_request", "cots"),
            ('{"domain":"test","descriptors":[{"five":"x"}],"cost":-1}', "invalid_request", "cost"),
            ('{"domain":"test","descriptors":[{"five":"x"}],"cost":1.5}', "invalid_request", "cost"),
        ):
            answer = curl(self.sluice.url("/v1/check"), data=body)
            self.assertEqual((answer.status, answer.json["error"]), (400, code), body)
            self.assertIn(word, answer.json["message"], body)

    def test_public_report_31(self):
        # 10 per 9 s and room for one: the exact wait is below a second, and must not become 0.
        policy = "{domain: d, descriptors: [{key: k, rate_limit: {requests_per_unit: 10, period: 9s, burst: 1, algorithm: token_bucket}}]}"
        body = {"domain": "d", "descriptors": [{"k": "v"}]}
        with Sluice(policy) as sluice:
            answers, _ = post_at_once(sluice.ports["http"], "/v1/check", [body, body])
        self.assertEqual([answer.status for answer in answers], [200, 429])
        self.assertTrue(0 < answers[1].json["retry_after"] < 1, answers[1].body)
        self.assertEqual(answers[1].one("Retry-After"), "1")
        self.assertEqual(answers[1].one("X-RateLimit-Reset"), "1")

    def test_public_report_32(self):
        policy = "{domain: d, descriptors: [{key: k, rate_limit: {unit: second, requests_per_unit: 5}}]}"
        body = {"domain": "d", "descriptors": [{"k": "v"}]}
        with Sluice(policy) as sluice:
            denied = None
            while denied is None:  # an edge of the window may come between
                answers, _ = post_at_once(sluice.ports["http"], "/v1/check", [body] * 6)
                denied = next((answer for answer in answers if answer.status == 429), None)
            self.assertEqual(denied.one("Retry-After"), "1")
            time.sleep(int(denied.one("Retry-After")))
            self.assertEqual(curl(sluice.url("/v1/check"), data=body).status, 200)

    def test_public_report_35(self):
        # Over the edge of a window, count and reset must come from one reading of the clock: when the count starts
        # anew, so does the time until reset, in the very same answer.
        policy = "{domain: d, descriptors: [{key: k, rate_limit: {unit: second, requests_per_unit: 1000000}}]}"
        body = {"domain": "d", "descriptors": [{"k": "v"}]}
        with Sluice(policy) as sluice:
            seen = []
            while sum(a["remaining"] < b["remaining"] for a, b in zip(seen, seen[1:])) < 2:
                answers, _ = post_at_once(sluice.ports["http"], "/v1/check", [body] * 50)
                seen += [answer.json for answer in answers]
                self.assertEqual({answer.one("X-RateLimit-Reset") for answer in answers}, {"1"})
        for a, b in zip(seen, seen[1:]):
            self.assertTrue(0 < b["reset_after"] <= 1, b)
            if a["remaining"] < b["remaining"]:
                self.assertEqual(b["remaining"], 999_999)
                self.assertGreater(b["reset_after"], a["reset_after"])
            else:
                self.assertEqual(b["remaining"], a["remaining"] - 1)
                self.assertLessEqual(b["reset_after"], a["reset_after"])

    def test_public_report_36(self):
        answer = self.check({"per_team": "36"}, {"per_user": "36"}, cost=9)
        self.assertEqual(answer.status, 200)
        # Answer.one fails when a field is there twice. The user's limit is nearer to a denial: 1 of 10 left.
        self.assertEqual(answer.one("X-RateLimit-Limit"), "10")
        self.assertEqual(answer.one("X-RateLimit-Remaining"), "1")
        self.assertRegex(answer.one("RateLimit"), r'^"PerTeam";r=991;t=\d+, "PerUser";r=1;t=\d+$')
        self.assertRegex(answer.one("RateLimit-Policy"), r'^"PerTeam";q=1000;w=\d+, "PerUser";q=10;w=\d+$')

    def test_public_report_37(self):
        for cost in (3, 1, 2):
            answer = self.check({"bucket": "37"}, cost=cost)
            state = re.fullmatch(r'"Bucket";r=(\d+)(?:;t=(\d+))?', answer.one("RateLimit"))
            if answer.status == 429 and state[1] == "0":
                self.assertGreaterEqual(int(answer.one("Retry-After")), int(state[2]))
        self.assertEqual((answer.status, state[1]), (429, "0"))

    def test_public_report_68(self):
        answer = self.check({"five": "a"}, {"one": "b"}, domain="nowhere")
        self.assertEqual((answer.status, answer.json["allowed"], answer.json["reason"]), (200, True, "unknown_domain"))
        self.assertEqual([one["allowed"] for one in answer.json["descriptors"]], [True, True])
        self.assertIsNone(answer.one("X-RateLimit-Limit"))

    def test_public_report_76(self):
        answers = [self.check({"shadowed": "76"}, {"one": "76"}) for _ in range(2)]
        self.assertEqual([answer.status for answer in answers], [200, 429])
        self.assertEqual(answers[1].json["limit_name"], "One")


class RateLimitServiceJson(Http):
    def test_every_field(self):
        year = 365 * 86400
        for remaining in (1, 0):
            answer = self.json([("two", "j")])
            self.assertEqual(answer.status, 200)
            status = answer.json["statuses"][0]
            reset = status.pop("durationUntilReset")
            self.assertTrue(0 < float(reset.removesuffix("s")) <= year)
            expected = {"code": "OK", "currentLimit": {"requestsPerUnit": 2, "unit": "YEAR"}}
            # proto3 JSON leaves a field out that has its default.
            self.assertEqual(status, expected | ({"limitRemaining": 1} if remaining else {}))
            self.assertEqual(answer.json["overallCode"], "OK")
        denied = self.json([("two", "j")])
        self.assertEqual((denied.status, denied.json["overallCode"]), (429, "OVER_LIMIT"))
        self.assertEqual(denied.json["statuses"][0]["code"], "OVER_LIMIT")
        added = {one["key"].lower(): one["value"] for one in denied.json["responseHeadersToAdd"]}
        self.assertEqual(added["retry-after"], denied.one("Retry-After"))

    def test_both_spellings_of_a_field(self):
        self.assertEqual(self.json([("five", "camel")], hitsAddend=2).json["statuses"][0]["limitRemaining"], 3)
        self.assertEqual(self.json([("five", "snake")], hits_addend=2).json["statuses"][0]["limitRemaining"], 3)

    def test_a_limit_in_the_request(self):
        override = {"entries": [{"key": "five", "value": "o"}], "limit": {"requestsPerUnit": 1, "unit": "YEAR"}}
        self.assertEqual([self.json(override).status for _ in range(2)], [200, 429])

    def test_refusals(self):
        for body in (
            "",
            "{",
            "[]",
            '{"nothing":1}',
            '{"domain":"test"}',
            json.dumps(rls_request([("five", "x")], domain="")),
        ):
            self.assertEqual(curl(self.sluice.url("/json"), data=body).status, 400, body)

    def test_public_report_67(self):
        for remaining in (4, 3, 2, 1, None):
            answer = self.json([("five", "67")], hitsAddend=0)
            self.assertEqual((answer.status, answer.json["statuses"][0].get("limitRemaining")), (200, remaining))
        look = {"entries": [{"key": "five", "value": "67"}], "hitsAddend": "0"}
        for _ in range(2):
            self.assertEqual(self.json(look).status, 200)
        self.assertEqual(self.json([("five", "67")], hitsAddend=1).status, 429)

    def test_public_report_68(self):
        answer = self.json([("five", "a")], [("one", "b")], domain="nowhere")
        self.assertEqual((answer.status, answer.json), (200, {"overallCode": "OK", "statuses": [{"code": "OK"}] * 2}))

    def test_public_report_71(self):
        for n in range(6):
            answer = self.json([("free", "71")], [("five", "71")])
            self.assertEqual(answer.status, 200 if n < 5 else 429)
            self.assertEqual(answer.json["statuses"][0], {"code": "OK", "limitRemaining": 4294967295})

    def test_public_report_72(self):
        for entries, name in (
            ([("path", "/api/feed")], "ApiWildcard"),
            ([("path", "/api/x")], "ApiWildcard"),
            ([("path", "/api/exact")], "ApiExact"),
            ([("path", "/ap")], "AnyPath"),
            ([("area", "shop"), ("path", "/api/feed")], "ShopApi"),
        ):
            self.assertEqual(self.json(entries).json["statuses"][0]["currentLimit"]["name"], name)
        self.assertNotIn("currentLimit", self.json([("area", "shop"), ("path", "/ap")]).json["statuses"][0])

    def test_public_report_73(self):
        day = 86400
        for key, length in (("month", 30 * day), ("week", 7 * day), ("year", 365 * day)):
            before = time.time()
            status = self.json([(key, "73")]).json["statuses"][0]
            after = time.time()
            reset = float(status["durationUntilReset"].removesuffix("s"))
            # Whole seconds, rounded up.
            self.assertTrue(length - after % length - 0.001 <= reset < length - before % length + 1.001, (key, reset))

    def test_public_report_76(self):
        codes = [
            [s["code"] for s in self.json([("shadowed", "j76")], [("one", "j76")]).json["statuses"]] for _ in range(2)
        ]
        self.assertEqual(codes, [["OK", "OK"], ["OK", "OVER_LIMIT"]])


class OtherPaths(Http):
    def test_healthcheck(self):
        for listener in ("http", "admin"):
            answer = curl(self.sluice.url("/healthcheck", listener))
            self.assertEqual((answer.status, answer.body), (200, "OK"))

    def test_metrics_count_by_limit(self):
        for _ in range(3):
            self.check({"one": "counted"})
        answer = curl(self.sluice.url("/metrics", "admin"))
        self.assertEqual(answer.status, 200)
        self.assertTrue(answer.one("Content-Type").startswith("text/plain; version=0.0.4"))
        counted = [line for line in answer.body.splitlines() if '"One"' in line]
        self.assertTrue(any("allowed" in line for line in counted), answer.body)
        self.assertTrue(any("denied" in line for line in counted), answer.body)
        self.assertEqual(curl(self.sluice.url("/metrics")).status, 200)

    def test_the_admin_port_says_what_it_has_and_decides_nothing(self):
        answer = curl(self.sluice.url("/", "admin"))
        self.assertEqual(answer.status, 200)
        self.assertIn("/metrics", answer.body)
        self.assertEqual(curl(self.sluice.url("/v1/check", "admin"), data="{}").status, 404)

    def test_head(self):
        for path in ("/healthcheck", "/metrics"):
            answer = curl(self.sluice.url(path), "--head")
            self.assertEqual((answer.status, answer.body), (200, ""))

    def test_unknown_paths_and_methods(self):
        self.assertEqual(curl(self.sluice.url("/nothing")).status, 404)
        for path, allow in (("/v1/check", "POST"), ("/json", "POST")):
            answer = curl(self.sluice.url(path))
            self.assertEqual((answer.status, answer.one("Allow")), (405, allow))
        answer = curl(self.sluice.url("/healthcheck"), data="x")
        self.assertEqual((answer.status, answer.one("Allow")), (405, "GET, HEAD"))

    def test_ways_to_send_a_body(self):
        body = {"domain": "test", "descriptors": [{"per_team": "ways"}]}
        url = self.sluice.url("/v1/check")
        for arguments in (
            ["--http1.0"],
            ["--header", "Transfer-Encoding: chunked"],
            ["--header", "Expect: 100-continue"],
            ["--header", "Content-Type: text/anything"],
            ["--header", "Connection: close"],
        ):
            self.assertEqual(curl(url, *arguments, data=body).status, 200, arguments)

    def test_a_body_that_is_larger_than_allowed(self):
        answer = curl(self.sluice.url("/v1/check"), data="x" * (64 * 1024 + 1))
        self.assertEqual(answer.status, 413)
        self.assertEqual(curl(self.sluice.url("/healthcheck")).status, 200)

    def test_more_header_bytes_than_allowed(self):
        answer = curl(self.sluice.url("/healthcheck"), "--header", "x-long: " + "x" * (65 * 1024))
        self.assertEqual(answer.status, 431)

    def test_pipelined_requests_are_answered_in_order(self):
        bodies = [{"domain": "test", "descriptors": [{"per_team": "pipeline"}]} for _ in range(100)]
        answers, _ = post_at_once(self.sluice.ports["http"], "/v1/check", bodies)
        self.assertEqual([answer.json["remaining"] for answer in answers], list(range(999, 899, -1)))

    def test_many_requests_on_one_connection(self):
        url = self.sluice.url("/healthcheck")
        answer = curl(url, url, url, "--write-out", "%{num_connects};")
        # One connect for the first of the three, none for the others.
        self.assertEqual(re.findall(r"(\d);", answer.body), ["1", "0", "0"])


if __name__ == "__main__":
    unittest.main()
