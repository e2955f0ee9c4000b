"""Gives credentials that expire soon, as STS, a container's agent and IMDSv2 do, on a free port of this machine, until
standard input ends. Usage: identity.py ISSUED LOG CONTROL

ISSUED gets a line of JSON for each pair of credentials: key, secret, token, expires (unix seconds).
LOG gets a line for each request: method, path and the action, if there is one.
CONTROL is JSON that each request reads: "lifeS", "fault" and "skewS" (this server's clock is ahead).
"""

import base64
import json
import os
import secrets
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

ISSUED, LOG, CONTROL = sys.argv[1:4]
ROLE = "/latest/meta-data/iam/security-credentials/"
SESSION = "session-token-of-imds"
LOCK = threading.Lock()


def control():
    try:
        with open(CONTROL) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def issued(life, skew):
    """Returns new credentials, which last from now on."""
    expires = int(time.time() + skew + life + 0.999)
    made = {"key": "ASIA" + secrets.token_hex(8).upper(), "secret": "hush" + secrets.token_hex(16),
            "token": "hush/" + base64.b64encode(secrets.token_bytes(60)).decode(), "expires": expires - skew}
    with LOCK, open(ISSUED, "a") as file:
        file.write(json.dumps(made) + "\n")
    return made | {"expiration": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expires))}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, *words):
        pass

    def send(self, status, body, **headers):
        self.send_response_only(status)
        self.send_header("Date", self.date_time_string(time.time() + self.rules.get("skewS", 0)))
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.rules, self.words = control(), {k: v[0] for k, v in parse_qs(body).items()}
        with LOCK, open(LOG, "a") as file:
            file.write(f"{self.command} {self.path} {self.words.get('Action', '')}".rstrip() + "\n")
        fault = self.rules.get("fault")
        if fault == "hang":
            time.sleep(60)
        elif fault == "garbage":
            self.send(200, b"\xff<>{" + self.secret().encode())
        elif fault == "huge":
            self.send(200, b"x" * (1 << 20))
        elif fault == "redirect":
            self.send(302, b"", Location=f"http://127.0.0.1:{self.server.server_port}/elsewhere")
        elif fault == "echo":
            # A server that lies writes what it was sent into its error.
            self.send(403, self.error(self.secret(), self.secret()))
        elif fault and fault.startswith("status-"):
            self.send(int(fault[7:]), self.error("AccessDenied" if fault == "status-403" else "Busy", "no"))
        elif fault == "gone":
            self.close_connection = True
        elif self.command == "POST":
            self.sts()
        elif self.path.startswith("/latest/"):
            self.imds()
        elif self.headers.get("Authorization") == self.rules.get("token"):
            self.json()
        else:
            self.send(401, b"no token")

    do_GET = do_PUT = do_POST = answer

    def secret(self):
        return self.words.get("WebIdentityToken") or self.headers.get("Authorization") or SESSION

    def error(self, code, message):
        return f"<ErrorResponse><Error><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>".encode()

    def issue(self):
        rules = self.rules
        life = -5 if rules.get("fault") == "expired" else rules.get("lifeS", 3600)
        made = issued(life, rules.get("skewS", 0))
        if rules.get("fault") == "forever":
            made["expiration"] = "9000-01-01T00:00:00Z"
        if rules.get("fault") == "evil":
            made["token"] = "a\r\nX-Evil: 1"
        return made

    def sts(self):
        action = self.words.get("Action")
        if action == "AssumeRoleWithWebIdentity":
            good = self.words.get("WebIdentityToken") == self.rules.get("token") and "Authorization" not in self.headers
        else:
            good = "Credential=AKIDSOURCE/" in self.headers.get("Authorization", "")
        if not good or not self.words.get("RoleArn", "").startswith("arn:aws:iam::"):
            self.send(403, self.error("InvalidIdentityToken", "refused"))
            return
        made = self.issue()
        self.send(200, (
            f"<{action}Response><{action}Result><Credentials><AccessKeyId>{made['key']}</AccessKeyId>"
            f"<SecretAccessKey>{made['secret']}</SecretAccessKey><SessionToken>{made['token']}</SessionToken>"
            f"<Expiration>{made['expiration']}</Expiration></Credentials></{action}Result></{action}Response>").encode())

    def imds(self):
        if self.command == "PUT":
            good = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds") == "21600"
            self.send(200 if good else 400, SESSION.encode())
        elif self.headers.get("X-aws-ec2-metadata-token") != SESSION:
            self.send(401, b"")
        elif self.path == ROLE:
            self.send(200, b"replay-role\n")
        elif self.path == ROLE + "replay-role":
            self.json()
        else:
            self.send(404, b"")

    def json(self):
        made = self.issue()
        self.send(200, json.dumps({
            "Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": made["key"], "SecretAccessKey": made["secret"],
            "Token": made["token"], "Expiration": made["expiration"]}).encode())


class Server(ThreadingHTTPServer):
    def handle_error(self, *words):
        pass


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
os._exit(0)
