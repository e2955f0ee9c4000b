"""Serves a store whose faults depend on the object's name, on a free port of this machine, until standard input
ends."""

import collections
import hashlib
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ASKED = collections.Counter()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, *words):
        pass

    def send(self, status, body=b"", length=None, **headers):
        self.send_response_only(status)
        usual = {"ETag": '"e"', "Content_Length": str(len(body) if length is None else length)}
        for name, value in (usual | headers).items():
            if value is not None:
                self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def error(self, status, code):
        self.send(status, f"<Error><Code>{code}</Code><Message>a &lt;word&gt; &#x26; more</Message></Error>".encode())

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path, _, query = self.path.partition("?")
        name = path.split("/")[2] if path.count("/") > 1 else next(
            (w[7:] for w in query.split("&") if w.startswith("prefix=")), "")
        kind, _, number = name.partition("-")
        ASKED[name] += 1
        getattr(self, kind)(int(number or 0))

    do_GET = do_HEAD = do_PUT = do_DELETE = answer

    def a(self, _):
        self.send(200)

    def short(self, _):
        self.send(200, b"0123456789", length=1000)
        self.close_connection = True

    def shortonce(self, number):
        if ASKED["shortonce-%d" % number] == 1:
            self.short(0)
        else:
            self.send(200, b"whole")

    def busy(self, number):
        self.send(200, b"well") if ASKED["busy-%d" % number] > number else self.error(503, "SlowDown")

    def conflict(self, number):
        if ASKED["conflict-%d" % number] > number:
            self.send(200)
        else:
            self.error(409, "ConditionalRequestConflict")

    def status(self, number):
        self.error(number, "Code%d" % number)

    def bucket(self, _):
        self.error(404, "NoSuchBucket")

    def skewed(self, _):
        self.error(403, "RequestTimeTooSkewed")

    def gone(self, _):
        self.close_connection = True

    def stall(self, _):
        self.send(200, b"01234", length=1000)
        time.sleep(60)

    def drip(self, _):
        self.send(200, length=1 << 20)
        while True:
            self.wfile.write(b"x" * 100)
            self.wfile.flush()
            time.sleep(0.2)

    def redirect(self, _):
        self.send(307, Location="http://127.0.0.1:%d/replay/secret" % self.server.server_port, x_amz_bucket_region="eu-west-3")

    def secret(self, _):
        self.send(200, b"followed")

    def large(self, number):
        self.send(200, b"x" * 1000, length=number)
        self.close_connection = True

    def endless(self, status):
        self.send(status or 200, length=0, Content_Length=None, Transfer_Encoding="chunked")
        while True:
            self.wfile.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")

    def lengthless(self, _):
        self.send(200, b"is that all?", Content_Length=None, Connection="close")
        self.close_connection = True

    def echo(self, _):
        """Sends the names of the request's own headers."""
        names = sorted(name.lower() for name in self.headers if name.lower().startswith("x-"))
        self.send(200, " ".join(names).encode())

    def tagless(self, _):
        self.send(200, b"x", ETag=None)

    def flipped(self, number):
        """Sends other bytes than were written: the first times, or always without a number."""
        body = b"well" if 0 < number < ASKED["flipped-%d" % number] else b"wild"
        self.send(200, body, x_amz_meta_sha256=hashlib.sha256(b"well").hexdigest())

    def rotten(self, number):
        """Sends other bytes than its tag is the MD5 of."""
        encryption = {1: "aws:kms", 2: "AES256"}.get(number)
        self.send(200, b"wild", ETag='"%s"' % hashlib.md5(b"well").hexdigest(), x_amz_server_side_encryption=encryption)

    def summed(self, _):
        """Has the MD5 of what was written as its tag; for a body of one byte."""
        self.send(200, ETag='"%s"' % hashlib.md5(b"\x01").hexdigest())

    def numbered(self, _):
        self.send(200, ETag='"%032x"' % ASKED["numbered"])

    def copyfails(self, _):
        self.error(200, "InternalError")

    def halflist(self, _):
        self.send(200, b"<ListBucketResult><IsTruncated>false</IsTruncated>")

    def samelist(self, _):
        entry = b"<Contents><Key>samelist-1a</Key><Size>1</Size><ETag>&quot;e&quot;</ETag></Contents>"
        self.send(200, b"<ListBucketResult>" + entry + b"</ListBucketResult>")

    def badtag(self, _):
        entry = b"<Contents><Key>badtag-1</Key><Size>1</Size><ETag>a&#13;&#10;X-Evil: 1</ETag></Contents>"
        self.send(200, b"<ListBucketResult>" + entry + b"</ListBucketResult>")

    def foreignlist(self, _):
        entry = b"<Contents><Key>other</Key><Size>1</Size><ETag>e</ETag></Contents>"
        self.send(200, b"<ListBucketResult>" + entry + b"</ListBucketResult>")

    def listed(self, *entries):
        """Sends a list of keys with their sizes."""
        form = "<Contents><Key>%s</Key><Size>%s</Size><ETag>e</ETag></Contents>"
        self.send(200, ("<ListBucketResult>" + "".join(form % entry for entry in entries) + "</ListBucketResult>").encode())

    def unsorted(self, _):
        self.listed(("unsorted-b", 1), ("unsorted-a", 1))

    def twins(self, _):
        self.listed(("twins-a", 1), ("twins-a", 1))

    def longkey(self, _):
        self.listed(("longkey" + "x" * 100_000, 1))

    def hugesize(self, _):
        self.listed(("hugesize", 2 ** 63 - 1))

    def oddsize(self, _):
        self.listed(("oddsize", -1))


class Server(ThreadingHTTPServer):
    def handle_error(self, *words):
        pass


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
os._exit(0)
