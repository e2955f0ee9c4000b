"""Receives events, or refuses batches, at a port of this machine until standard input ends. Usage: receiver.py PORT LOG CONTROL

LOG gets two lines of JSON for each request: one when it has arrived, and one with its status before the answer is sent.
The file CONTROL tells the answer: {"status": 503, "headers": {...}, "body": "...", "bytes": 1000000}. With "hold" a
request waits until the file has changed; with "delayS" an answer comes up to so many seconds later. Each line says whether one of the paths in "watch" has the batch's name in it.
"""

import json
import os
import random
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, LOG, CONTROL = int(sys.argv[1]), sys.argv[2], sys.argv[3]
LOCK = threading.Lock()


def control():
    with open(CONTROL) as file:
        return json.load(file)


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, *words):
        pass

    def note(self, status):
        is_event = self.command == "POST"
        batch = json.loads(self.body).get("batch", "") if is_event else ""
        is_retired = any(os.path.lexists(f"{path}/{batch}") for path in control().get("watch", []))
        line = {"status": status, "path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()},
                "body": self.body.decode() if is_event else "", "isRetired": is_retired}
        with LOCK, open(LOG, "a") as log:
            log.write(json.dumps(line) + "\n")

    # A batch instead of an event.
    def do_PUT(self):
        self.do_POST()

    def do_POST(self):
        self.body = self.rfile.read(int(self.headers["Content-Length"]))
        self.note(0)
        while control().get("hold"):
            time.sleep(0.01)
        answer = control()
        status = answer.get("status", 204)
        body = answer.get("body", "").encode() + b"x" * answer.get("bytes", 0)
        self.note(status)
        time.sleep(random.uniform(0, answer.get("delayS", 0)))
        try:
            self.send_response_only(status)
            for name, value in answer.get("headers", {}).items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()
        except OSError:
            # The worker was killed, or waits no longer.
            self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass


server = Server(("127.0.0.1", PORT), Receiver)
print("ready", flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
