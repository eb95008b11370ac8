#!/usr/bin/env python3
"""Runs article_api (its path is the argument) on a redis-server of its own, and says what is wrong, or nothing."""
import base64
import hashlib
import hmac
import http.client
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

SECRET = b"a secret of the tests, of 32 bytes or more"
OWN_WORDS = '{"code":429,"message":"请求过于频繁"}'


def token(user):
    def part(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    signed = part(b'{"alg":"HS256","typ":"JWT"}') + b"." + part(json.dumps({"sub": user, "exp": time.time() + 600}).encode())
    return (signed + b"." + part(hmac.new(SECRET, signed, hashlib.sha256).digest())).decode()


def wait_until(ready, what):
    end = time.monotonic() + 20
    while not ready():
        assert time.monotonic() < end, what
        time.sleep(0.02)


class Api:
    def __init__(self, port):
        self.port = port

    def ask(self, method, path, bearer=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path, headers={"Authorization": "Bearer " + bearer} if bearer else {})
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer, body


def check(api, redis):
    ann = token("ann")

    def write(bearer):
        return api.ask("POST", "/articles", bearer)

    # Redis serves the limiter when its answers come with figures.
    wait_until(lambda: write(token("probe"))[0].getheader("X-RateLimit-Limit") == "30", "Redis never served")

    # 30 at once; what comes beyond is told so in the limit's own words. Up to 10 a second come back meanwhile.
    begin = time.monotonic()
    statuses = []
    while 429 not in statuses:
        answer, body = write(ann)
        statuses.append(answer.status)
    elapsed = time.monotonic() - begin
    created = statuses.count(201)
    assert 30 <= created <= 30 + 10 * elapsed + 1, (created, elapsed)
    assert body == OWN_WORDS, body
    assert answer.getheader("Retry-After") == "1", answer.headers
    assert answer.getheader("RateLimit-Policy") == '"ArticleCreate";q=30;w=3', answer.headers
    assert write(token("bob"))[0].status == 201, "another user's limit is another one"

    # Nobody writes without a token, or with another's.
    assert write(None)[0].status == 401
    forged = ann[:-4] + ("AAAA" if ann[-4:] != "AAAA" else "BBBB")
    assert write(forged)[0].status == 401
    assert api.ask("GET", "/articles/1")[0].status == 200, "reading needs no token"

    redis.kill()
    redis.wait()
    # The write route is closed; the read route is counted by this server.
    wait_until(lambda: write(token("carl"))[0].status == 503, "the write route stays open without Redis")
    answer, body = write(token("dora"))
    assert answer.status == 503 and json.loads(body)["error"] == "store_unavailable", body
    assert answer.getheader("X-RateLimit-Limit") is None and answer.getheader("Retry-After") is None
    answer, body = api.ask("GET", "/articles/1")
    assert answer.status == 200 and answer.getheader("X-RateLimit-Limit") == "100", answer.headers


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    processes = []
    try:
        shutil.copy(pathlib.Path(__file__).parent / "policy.yaml", folder)
        (folder / "secret").write_bytes(SECRET)
        socket = folder / "redis.sock"
        server = os.environ.get("SLUICE_REDIS_SERVER", "redis-server")
        options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(folder)]
        redis = subprocess.Popen([server, *options], stdout=subprocess.DEVNULL)
        processes.append(redis)
        wait_until(socket.exists, "redis-server does not start")
        api = subprocess.Popen([sys.argv[1], str(folder / "policy.yaml"), f"unix://{socket}"], stdout=subprocess.PIPE, text=True)
        processes.append(api)
        check(Api(int(api.stdout.readline())), redis)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        shutil.rmtree(folder)


main()
