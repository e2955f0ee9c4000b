"""Serves queues of SQS whose faults depend on the queue's name, on a free port of this machine, until standard input ends."""

import collections
import json
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

    def send(self, status, body=b"{}", length=None, **headers):
        self.send_response_only(status)
        for name, value in {"Content_Length": str(len(body) if length is None else length), **headers}.items():
            if value is not None:
                self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def error(self, status, code):
        self.send(status, json.dumps({"__type": "com.amazonaws.sqs#" + code, "message": "told\nso"}).encode())

    def do_POST(self):
        members = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        action = self.headers["X-Amz-Target"].removeprefix("AmazonSQS.")
        name = members["QueueUrl"].rpartition("/")[2]
        kind, _, number = name.partition("-")
        ASKED[name + action] += 1
        if members.get("Entries", [{}])[0].get("ReceiptHandle") == "none" and kind not in ("status", "garbage", "forbidden"):
            # The check at the start of a worker.
            failed = {"Id": "0", "Code": "ReceiptHandleIsInvalid", "SenderFault": True}
            self.send(200, json.dumps({"Failed": [failed]}).encode())
        elif action == "GetQueueAttributes" and kind not in ("status", "garbage"):
            self.send(200, json.dumps({"Attributes": {"ApproximateNumberOfMessages": "many"}}).encode())
        else:
            getattr(self, kind)(action, members, int(number or 0), ASKED[name + action])

    def messages(self, *all):
        self.send(200, json.dumps({"Messages": all}).encode())

    def status(self, action, members, number, asked):
        self.error(number, f"Code{number}")

    def busy(self, action, members, number, asked):
        self.error(503, "ServiceUnavailable") if asked <= number else self.send(200)

    def partly(self, action, members, number, asked):
        """Takes one message a call."""
        entries = members["Entries"]
        failed = [{"Id": e["Id"], "Code": "InternalError", "SenderFault": False} for e in entries[1:]]
        self.send(200, json.dumps({"Successful": [{"Id": entries[0]["Id"]}], "Failed": failed}).encode())

    def refusing(self, action, members, number, asked):
        failed = [{"Id": e["Id"], "Code": "InvalidMessageContents", "Message": "no", "SenderFault": True} for e in members["Entries"]]
        self.send(200, json.dumps({"Failed": failed}).encode())

    def silent(self, action, members, number, asked):
        """Says of no message what became of it."""
        self.send(200)

    def garbage(self, action, members, number, asked):
        self.send(200, b"<html>a portal</html>")

    def gone(self, action, members, number, asked):
        self.close_connection = True

    def large(self, action, members, number, asked):
        self.send(200, b"{" + b" " * 1000, length=1 << 40)
        self.close_connection = True

    def endless(self, action, members, number, asked):
        self.send(200, b"", Content_Length=None, Transfer_Encoding="chunked")
        while True:
            self.wfile.write(b"1000\r\n" + b" " * 4096 + b"\r\n")

    def odd(self, action, members, number, asked):
        """Messages that are none."""
        good = {"MessageId": "a", "ReceiptHandle": "b", "Body": "c", "Attributes": {"ApproximateReceiveCount": "1"}}
        self.messages([1, {}, good | {"MessageId": "../x"}, good | {"MessageId": ""}, good | {"ReceiptHandle": "x" * 5000},
                       good | {"Body": 7}, good | {"MessageId": "x" * 101}][number])

    def count(self, action, members, number, asked):
        """A message whose count of deliveries is no number."""
        counts = ["-3", "99999999999999999999", "many", ""]
        self.messages({"MessageId": "a", "ReceiptHandle": "b", "Body": "c", "Attributes": {"ApproximateReceiveCount": counts[number]}})

    def same(self, action, members, number, asked):
        """Delivers one message again and again."""
        self.messages({"MessageId": "a", "ReceiptHandle": "b", "Body": "c", "Attributes": {"ApproximateReceiveCount": "1"}})

    def empty(self, action, members, number, asked):
        """Delivers messages without a batch for ever."""
        test = json.dumps({"Event": "s3:TestEvent"})
        if action == "ReceiveMessage":
            self.messages({"MessageId": "a", "ReceiptHandle": "b", "Body": test})
        else:
            self.send(200)

    def junk(self, action, members, number, asked):
        """Delivers messages that no reader understands, for ever."""
        if action == "ReceiveMessage":
            self.messages({"MessageId": "a", "ReceiptHandle": "b", "Body": "{" + "x" * 100_000})
        else:
            self.send(200)

    def forbidden(self, action, members, number, asked):
        self.error(403, "AccessDeniedException")

    def locked(self, action, members, number, asked):
        """Delivers one message again and again, and renews no lease."""
        if action == "ReceiveMessage":
            self.messages({"MessageId": "a", "ReceiptHandle": "b", "Body": "c", "Attributes": {"ApproximateReceiveCount": str(asked)}})
        else:
            self.error(403, "AccessDeniedException")

    def renewing(self, action, members, number, asked):
        """Refuses the first renewals."""
        if asked <= number:
            self.error(400, "Odd")
        else:
            self.send(200, json.dumps({"Successful": [{"Id": e["Id"]} for e in members["Entries"]]}).encode())

    def lapsed(self, action, members, number, asked):
        """Delivers a message whose handle is of no use soon."""
        if action == "ReceiveMessage":
            self.messages({"MessageId": "a", "ReceiptHandle": "b", "Body": "c"})
        else:
            self.error(400, "InvalidParameterValueException")

    def stall(self, action, members, number, asked):
        self.send(200, b"{", length=1000)
        time.sleep(60)


class Server(ThreadingHTTPServer):
    def handle_error(self, *words):
        pass


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
os._exit(0)
