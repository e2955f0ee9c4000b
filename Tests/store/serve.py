"""Runs an S3 store and SQS for tests: moto, with a bucket, on a free port of this machine, until standard input ends.

The store answers one request at a time, so that conditions are atomic. It answers no request with an incomplete body.
It checks signatures as S3 and SQS do, with botocore's own signer. Paths below /open/ need none. Usage: serve.py BUCKET [LOG]

Below /open/ are faults, too, as targets of SQS: Fault.LoseVisibility makes all messages that are held visible again, and
Fault.LoseAnswers performs so many requests ("Count") of SQS without an answer.

LOG gets a line for each signed request: method, status, received and sent bytes, path.

The environment may name two files that each request reads. STORE_ISSUED has the credentials of identity.py: they are
accepted until they expire. STORE_CONTROL is JSON: "deny" (nothing is permitted), "busy" (the share of requests that get
503), "skewS" (the store's clock is ahead, and it tolerates 300 seconds), "losesWrites" (the first answer to each PUT is lost),
"unconditional" (If-Match and If-None-Match are ignored).
"""

import datetime
import hashlib
import hmac
import io
import json
import logging
import os
import random
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, quote, unquote, unquote_to_bytes

sys.path.insert(0, os.environ.get("MOTO", os.path.join(os.path.dirname(__file__), "../../.build/moto")))
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth  # noqa: E402
from botocore.awsrequest import AWSRequest  # noqa: E402
from botocore.credentials import Credentials  # noqa: E402
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app  # noqa: E402
from moto.s3.models import s3_backends  # noqa: E402
from moto.sqs.models import sqs_backends  # noqa: E402
from werkzeug.test import run_wsgi_app  # noqa: E402

KEY, SECRET, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1"


STATUS = {"ExpiredToken": "400 Bad Request", "InvalidToken": "400 Bad Request", "SlowDown": "503 Slow Down"}


def control():
    try:
        with open(os.environ["STORE_CONTROL"]) as file:
            return json.load(file)
    except (KeyError, OSError, ValueError):
        return {}


def issued(key):
    """Returns the credentials of a key that identity.py has issued, or None."""
    try:
        with open(os.environ["STORE_ISSUED"]) as file:
            return next((made for made in map(json.loads, file) if made["key"] == key), None)
    except (KeyError, OSError, ValueError):
        return None


def forbidden(environ, rules):
    """Returns the reason why a request is refused whatever its signature is, or None."""
    if rules.get("deny"):
        return "AccessDenied", "Access Denied"
    if random.random() < rules.get("busy", 0):
        return "SlowDown", "Please reduce your request rate."
    if "skewS" in rules and "HTTP_X_AMZ_DATE" in environ:
        said = datetime.datetime.strptime(environ["HTTP_X_AMZ_DATE"] + "+0000", "%Y%m%dT%H%M%SZ%z").timestamp()
        if abs(said - time.time() - rules["skewS"]) > 300:
            return "RequestTimeTooSkewed", "The difference between the request time and the current time is too large."
    return None


def wrong(environ, body):
    """Returns the reason why a request's signature is invalid, or None."""
    path, _, query = environ["REQUEST_URI"].partition("?")
    # S3 decodes the path and encodes it again before it checks the signature.
    path = quote(unquote(path), safe="/-_.~")
    words = dict(parse_qsl(query, keep_blank_values=True))
    headers = {k[5:].replace("_", "-").lower(): v for k, v in environ.items() if k.startswith("HTTP_")}
    headers.update({k: environ[k.replace("-", "_").upper()] for k in ("content-type", "content-length")
                    if environ.get(k.replace("-", "_").upper())})
    key = words.get("X-Amz-Credential", headers.get("authorization", "").partition("Credential=")[2]).partition("/")[0]
    made = issued(key) or {"key": KEY, "secret": SECRET}
    credentials = Credentials(made["key"], made["secret"])
    if "expires" in made and time.time() > made["expires"]:
        return "ExpiredToken", "The provided token has expired."
    if "token" in made and made["token"] not in (headers.get("x-amz-security-token"), words.get("X-Amz-Security-Token")):
        return "InvalidToken", "The provided token is malformed or otherwise invalid."
    service = "sqs" if "x-amz-target" in headers else "s3"
    if "X-Amz-Signature" in words:
        said, scope, signed = words.pop("X-Amz-Signature"), words["X-Amz-Credential"], words["X-Amz-SignedHeaders"]
        date, signer = words["X-Amz-Date"], S3SigV4QueryAuth(credentials, "s3", REGION, expires=3600)
        begun = datetime.datetime.strptime(date + "+0000", "%Y%m%dT%H%M%SZ%z")
        if datetime.datetime.now(datetime.timezone.utc) > begun + datetime.timedelta(seconds=int(words["X-Amz-Expires"])):
            return "AccessDenied", "Request has expired"
    elif "authorization" in headers:
        parts = dict(p.strip().split("=", 1) for p in headers["authorization"].partition(" ")[2].split(","))
        said, scope, signed = parts["Signature"], parts["Credential"], parts["SignedHeaders"]
        date = headers["x-amz-date"]
        signer = (SigV4Auth if service == "sqs" else S3SigV4Auth)(credentials, service, REGION)
        digest = headers.get("x-amz-content-sha256")
        if digest not in (hashlib.sha256(body).hexdigest(), "UNSIGNED-PAYLOAD"):
            return "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match"
    else:
        return "AccessDenied", "Access Denied."
    if scope != f"{made['key']}/{date[:8]}/{REGION}/{service}/aws4_request":
        return "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."
    unsigned = [name for name in headers if name.startswith("x-amz-") and name not in signed.split(";")]
    if unsigned:
        return "AccessDenied", "There were headers present in the request which were not signed: " + ", ".join(unsigned)
    query = "&".join(f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in sorted(words.items()))
    request = AWSRequest(
        method=environ["REQUEST_METHOD"], url=f"http://{headers['host']}{path}?{query}",
        headers={name: headers[name] for name in signed.split(";")})
    request.context["timestamp"] = date
    if "X-Amz-Date" in words:
        request.context["payload"] = "UNSIGNED-PAYLOAD"
    ours = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    return None if hmac.compare_digest(ours, said) else ("SignatureDoesNotMatch", "The request signature we calculated does not match")


MOTO, LOCK = DomainDispatcherApplication(create_backend_app), threading.Lock()
LOST = {"answers": 0, "writes": set()}
LOG = open(sys.argv[2], "a", buffering=1) if len(sys.argv) > 2 else None


def fault(target, body):
    with LOCK:
        if target == "Fault.LoseAnswers":
            LOST["answers"] = json.loads(body)["Count"]
        else:
            name = json.loads(body)["QueueUrl"].split("/")[-1]
            for message in sqs_backends["123456789012"][REGION].get_queue(name)._messages:
                message.visible_at = 0.0
    return b"{}"


class Handler(BaseHTTPRequestHandler):
    # Reuses connections, which the WSGI reference server does not.
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *words):
        pass

    def answer(self):
        length = int(self.headers.get("Content-Length", 0))
        head = sum(len(name) + len(value) + 4 for name, value in self.headers.items())
        self.came = len(self.raw_requestline) + head + 2 + length
        body = self.rfile.read(length)
        if len(body) < length:
            self.close_connection = True
            return
        target = self.headers.get("X-Amz-Target", "")
        environ = self.environ(body)
        self.rules = control()
        why = None if self.is_open else forbidden(environ, self.rules) or wrong(environ, body)
        if self.rules.get("unconditional"):
            environ = {name: value for name, value in environ.items() if name not in ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")}
        if target.startswith("Fault.") and self.is_open:
            status, headers, parts = "200 OK", [], [fault(target, body)]
        elif why and target:
            status, headers = STATUS.get(why[0], "403 Forbidden"), [("Content-Type", "application/x-amz-json-1.0")]
            parts = [json.dumps({"__type": "com.amazonaws.sqs#" + why[0], "message": why[1]}).encode()]
        elif target:
            parts, status, headers = self.queued(body, target)
            if not self.is_open and LOST["answers"] > 0:
                LOST["answers"] -= 1
                self.close_connection = True
                return
        elif why:
            status, headers = STATUS.get(why[0], "403 Forbidden"), [("Content-Type", "application/xml")]
            text = "<?xml version='1.0'?><Error><Code>%s</Code><Message>%s</Message></Error>" % why
            parts = [text.encode()]
        else:
            with LOCK:
                parts, status, headers = run_wsgi_app(MOTO, environ, buffered=True)
                if self.rules.get("losesWrites") and self.command == "PUT":
                    write = (self.path, self.headers.get("If-Match"), hashlib.sha256(body).digest())
                    if write not in LOST["writes"]:
                        LOST["writes"].add(write)
                        self.close_connection = True
                        return
        self.reply(status, headers, b"".join(parts))

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = answer

    def queued(self, body, target):
        """Answers a request for SQS. One that waits for a message does not keep the others waiting."""
        members, wait = json.loads(body), 0
        if target.endswith(".ReceiveMessage"):
            wait = members.get("WaitTimeSeconds", 0)
            body = json.dumps(members | {"WaitTimeSeconds": 0}).encode()
        end = time.monotonic() + wait
        while True:
            with LOCK:
                parts, status, headers = run_wsgi_app(MOTO, self.environ(body), buffered=True)
            parts = [b"".join(parts)]
            if time.monotonic() >= end or b'"Messages"' in parts[0] or not status.startswith("200"):
                return parts, status, headers
            time.sleep(0.02)

    def environ(self, body):
        self.is_open = self.path.startswith("/open/")
        target = self.path.removeprefix("/open")
        path, _, query = target.partition("?")
        environ = {"HTTP_" + name.upper().replace("-", "_"): value for name, value in self.headers.items()}
        for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            environ[name] = environ.pop("HTTP_" + name, "")
        environ["CONTENT_LENGTH"] = environ["CONTENT_LENGTH"] and str(len(body))
        if self.is_open:
            # moto requires a signature, but does not check it.
            service = "sqs" if "HTTP_X_AMZ_TARGET" in environ else "s3"
            environ["HTTP_AUTHORIZATION"] = f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/{REGION}/{service}/aws4_request"
        return environ | {
            "REQUEST_METHOD": self.command, "REQUEST_URI": target, "RAW_URI": target, "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"), "QUERY_STRING": query,
            "SERVER_NAME": "127.0.0.1", "SERVER_PORT": str(self.server.server_port), "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.version": (1, 0), "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr, "wsgi.multithread": True, "wsgi.multiprocess": False, "wsgi.run_once": False,
        }

    def reply(self, status, headers, body):
        self.send_response_only(int(status.split()[0]))
        self.send_header("Date", self.date_time_string(time.time() + self.rules.get("skewS", 0)))
        for name, value in headers:
            if name.lower() not in ("connection", "content-length", "date"):
                self.send_header(name, value)
        length = dict((n.lower(), v) for n, v in headers).get("content-length") if self.command == "HEAD" else None
        if not status.startswith("204"):
            self.send_header("Content-Length", length or str(len(body)))
        went = sum(map(len, self._headers_buffer)) + 2 + (len(body) if self.command != "HEAD" else 0)
        self.end_headers()
        if LOG and not self.is_open:
            LOG.write(f"{self.command} {status.split()[0]} {self.came} {went} {self.path}\n")
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, request, client_address):
        # Tests kill clients in the middle of requests.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


logging.disable(logging.CRITICAL)
s3_backends["123456789012"]["aws"].create_bucket(sys.argv[1], REGION)
server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
os._exit(0)
