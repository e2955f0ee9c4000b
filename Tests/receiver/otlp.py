"""Judges bodies of OTLP in JSON by the protocol's own schema: the classes that Google's compiler made of its .proto files.

Reads a body a line from standard input, and prints the spans of all of them: an object of JSON a line, by their start. Ends with 1
for a body that is no ExportTraceServiceRequest. With --listen PORT LOG it is a receiver of OTLP over HTTP instead: it answers the first
request with 503, judges the others, and appends their spans to LOG.
"""

import base64
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, os.environ.get("OTLP", os.path.join(os.path.dirname(__file__), "../../.build/otlp")))
from google.protobuf import json_format  # noqa: E402
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2  # noqa: E402
from opentelemetry.proto.trace.v1 import trace_pb2  # noqa: E402


def with_base64(value):
    """OTLP writes the bytes of IDs in hexadecimal; the JSON of protobuf has base64."""
    if isinstance(value, list):
        return [with_base64(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: base64.b64encode(bytes.fromhex(item)).decode() if key in ("traceId", "spanId", "parentSpanId")
            else with_base64(item) for key, item in value.items()}


def plain(value):
    kind = value.WhichOneof("value")
    found = getattr(value, kind)
    return [plain(item) for item in found.values] if kind == "array_value" else found


def attributes(message):
    return {item.key: plain(item.value) for item in message.attributes}


def spans(body):
    request = trace_service_pb2.ExportTraceServiceRequest()
    json_format.Parse(json.dumps(with_base64(json.loads(body))), request)
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                if len(span.trace_id) != 16 or len(span.span_id) != 8 or len(span.parent_span_id) not in (0, 8):
                    raise ValueError(f"the IDs of {span.name} have other sizes")
                if not 0 < span.start_time_unix_nano <= span.end_time_unix_nano:
                    raise ValueError(f"{span.name} ends before it starts")
                yield {"trace": span.trace_id.hex(), "id": span.span_id.hex(), "parent": span.parent_span_id.hex(),
                       "name": span.name, "kind": trace_pb2.Span.SpanKind.Name(span.kind),
                       "start": span.start_time_unix_nano, "end": span.end_time_unix_nano,
                       "attributes": attributes(span), "events": [[e.name, attributes(e)] for e in span.events],
                       "status": trace_pb2.Status.StatusCode.Name(span.status.code), "message": span.status.message,
                       "resource": attributes(resource.resource), "scope": [scope.scope.name, scope.scope.version]}


class Receiver(BaseHTTPRequestHandler):
    count = 0

    def log_message(self, *words):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Receiver.count += 1
        if Receiver.count == 1:
            return self.answer(503, b"not yet")
        if self.path != "/v1/traces" or self.headers["Content-Type"] != "application/json":
            return self.answer(404, b"not OTLP in JSON")
        found = [json.dumps(span) + "\n" for span in spans(body)]
        with open(sys.argv[3], "a") as log:
            log.writelines(found)
        self.answer(200, b"{}")

    def answer(self, status, body):
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if sys.argv[1:2] == ["--listen"]:
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Receiver)
    print(server.server_port, flush=True)
    server.serve_forever()
for span in sorted((span for line in sys.stdin for span in spans(line)), key=lambda span: span["start"]):
    print(json.dumps(span))
