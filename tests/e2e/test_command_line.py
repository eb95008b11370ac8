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


class CompatVariables(unittest.TestCase):
    """Each variable of envoyproxy/ratelimit is read, or told of in one line: `sluice config` shows either."""

    REDIS = {
        "TYPE": "CLUSTER",
        "URL": "127.0.0.2:7",
        "POOL_SIZE": "20",
        "AUTH": "user:secret",
        "SENTINEL_AUTH": "secret",
        "TLS": "true",
        "PIPELINE_WINDOW": "150us",
        "PIPELINE_LIMIT": "8",
        "CLUSTER_PIPELINE_PARALLELISM": "4",
        "TIMEOUT": "1s",
        "POOL_ON_EMPTY_BEHAVIOR": "WAIT",
    }
    SHOWN = {
        "HOST": "127.0.0.2",
        "PORT": "1",
        "DEBUG_HOST": "127.0.0.2",
        "DEBUG_PORT": "2",
        "GRPC_HOST": "127.0.0.2",
        "GRPC_PORT": "3",
        "GRPC_UDS": "/run/rl.sock",
        "GRPC_MAX_CONNECTION_AGE": "2h",
        "GRPC_MAX_CONNECTION_AGE_GRACE": "2h",
        "LOG_LEVEL": "DEBUG",
        "LOG_FORMAT": "json",
        "FORCE_START_WITHOUT_INITIAL_CONFIG": "true",
        "CONFIG_GRPC_XDS_NODE_ID": "n",
        "CONFIG_GRPC_XDS_NODE_METADATA": "k=v,l=w",
        "CONFIG_GRPC_XDS_SERVER_URL": "h:1",
        "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL": "3s",
        "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS": "a:b",
        "CONFIG_GRPC_XDS_SERVER_USE_TLS": "true",
        "CONFIG_GRPC_XDS_CLIENT_TLS_CERT": "/c",
        "CONFIG_GRPC_XDS_CLIENT_TLS_KEY": "/k",
        "CONFIG_GRPC_XDS_SERVER_TLS_CACERT": "/ca",
        "CONFIG_GRPC_XDS_SERVER_TLS_SAN": "s",
        "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL": "10s",
        "XDS_CLIENT_BACKOFF_MAX_INTERVAL": "60s",
        "XDS_CLIENT_BACKOFF_RANDOM_FACTOR": "0.5",
        "XDS_CLIENT_BACKOFF_JITTER": "true",
        "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES": "1000",
        "PROMETHEUS_MAPPER_YAML": "/m.yaml",
        "EXPIRATION_JITTER_MAX_SECONDS": "10",
        "LOCAL_CACHE_SIZE_IN_BYTES": "1000",
        "CACHE_KEY_PREFIX": "p",
        "REDIS_TLS_CLIENT_CERT": "/c",
        "REDIS_TLS_CLIENT_KEY": "/k",
        "REDIS_TLS_CACERT": "/ca",
        "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION": "true",
        "REDIS_STARTUP_INITIAL_INTERVAL": "1s",
        "REDIS_STARTUP_MAX_INTERVAL": "30s",
        "REDIS_STARTUP_MAX_ELAPSED_TIME": "0",
        **{f"REDIS_{name}": value for name, value in REDIS.items()},
        "MEMCACHE_HOST_PORT": "h:1",
        "MEMCACHE_SRV": "s",
        "MEMCACHE_SRV_REFRESH": "1s",
        "MEMCACHE_MAX_IDLE_CONNS": "3",
        "MEMCACHE_TLS": "true",
        "MEMCACHE_TLS_CLIENT_CERT": "/c",
        "MEMCACHE_TLS_CLIENT_KEY": "/k",
        "MEMCACHE_TLS_CACERT": "/ca",
        "MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION": "true",
        "TRACING_ENABLED": "true",
        "TRACING_EXPORTER_PROTOCOL": "grpc",
        "TRACING_SERVICE_NAME": "n",
        "TRACING_SERVICE_NAMESPACE": "n",
        "TRACING_SERVICE_INSTANCE_ID": "i",
        "TRACING_SAMPLING_RATE": "0.5",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1",
    }
    # Of these it is told that such a value cannot be read.
    READ = {
        "GRPC_SERVER_USE_TLS": "maybe",
        "RUNTIME_IGNOREDOTFILES": "maybe",
        "RUNTIME_WATCH_ROOT": "maybe",
        "MERGE_DOMAIN_CONFIG": "maybe",
        "CONFIG_TYPE": "maybe",
        "BACKEND_TYPE": "maybe",
        "USE_STATSD": "maybe",
        "STATSD_PORT": "maybe",
        "USE_DOG_STATSD": "maybe",
        "USE_DOG_STATSD_MOGRIFIERS": "A",
        "USE_PROMETHEUS": "maybe",
        "PROMETHEUS_PATH": "maybe",
        "PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS": "maybe",
        "EXTRA_TAGS": "maybe",
        "STATS_FLUSH_INTERVAL": "maybe",
        "DISABLE_STATS": "maybe",
        "NEAR_LIMIT_RATIO": "maybe",
        "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT": "maybe",
        "SHADOW_MODE": "maybe",
        "QUOTA_MODE": "maybe",
        "RESPONSE_DYNAMIC_METADATA": "maybe",
        "LIMIT_RESPONSE_HEADERS_ENABLED": "maybe",
        "LIMIT_LIMIT_HEADER": "may be",
        "LIMIT_REMAINING_HEADER": "may be",
        "LIMIT_RESET_HEADER": "may be",
        "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED": "maybe",
        "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION": "maybe",
        "REDIS_PERSECOND": "maybe",
        "REDIS_SOCKET_TYPE": "maybe",
        "REDIS_PERSECOND_SOCKET_TYPE": "maybe",
    }

    @staticmethod
    def config(**variables):
        run = command("config", "--compat", "envoyproxy", env={"REDIS_URL": "127.0.0.1:6379", **variables})
        return run.returncode, run.stdout + run.stderr

    def test_each_is_read_or_told_of(self):
        plain = self.config()
        self.assertEqual(plain[0], 0, plain[1])
        for name, value in self.SHOWN.items():
            code, told = self.config(**{name: value})
            self.assertEqual(code, 0, (name, told))
            self.assertNotEqual(told, plain[1], name)
        second = {"REDIS_PERSECOND": "true", "REDIS_PERSECOND_URL": "127.0.0.1:6380"}
        for name, value in self.READ.items():
            code, told = self.config(**{**second, name: value})
            self.assertEqual(code, 1, name)
            self.assertRegex(told, "DOG_STATSD_MOGRIFIER_A_" if name == "USE_DOG_STATSD_MOGRIFIERS" else f"{name}[: ]")
        # Of what is read it shows where that Redis is.
        read = {"TYPE", "AUTH", "TLS", "TIMEOUT"}
        for name, value in self.REDIS.items():
            code, told = self.config(**{**second, f"REDIS_PERSECOND_{name}": value})
            self.assertEqual(code, 0, (name, told))
            self.assertEqual(f"REDIS_PERSECOND_{name}" in told, name not in read, (name, told))

    def test_all_at_once(self):
        code, told = self.config(REDIS_PERSECOND="true", REDIS_PERSECOND_URL="127.0.0.1:6380", **self.SHOWN)
        self.assertEqual(code, 0, told)


if __name__ == "__main__":
    unittest.main()
