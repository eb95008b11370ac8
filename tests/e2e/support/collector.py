"""A collector of OpenTelemetry: what is exported to it by OTLP/HTTP, read by OpenTelemetry's own definitions.

xds-protos brings them in an older version, which calls `scope_spans` otherwise."""

import http.server
import threading

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse

from .program import wait_until


class Collector:
    """A context manager; its port is open from the beginning."""

    def __init__(self):
        self.requests = []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                collector.requests.append(ExportTraceServiceRequest.FromString(self.body()))
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def body(self):
                if self.headers["Content-Length"] is not None:
                    return self.rfile.read(int(self.headers["Content-Length"]))
                chunks = []
                while size := int(self.rfile.readline(), 16):
                    chunks.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(chunks)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def spans(self, service):
        """Those of a service, in the order in which they came."""
        return [
            span
            for request in list(self.requests)
            for of_resource in request.resource_spans
            if any(a.key == "service.name" and a.value.string_value == service for a in of_resource.resource.attributes)
            for of_scope in of_resource.instrumentation_library_spans
            for span in of_scope.spans
        ]

    def wait_for(self, service, count=1):
        return wait_until(lambda: (s if len(s := self.spans(service)) >= count else None), f"{count} spans of {service}")


def attributes(span):
    return {a.key: a.value.string_value or a.value.int_value for a in span.attributes}
