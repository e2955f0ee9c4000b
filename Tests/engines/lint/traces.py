"""Runs a worker that is built with the trait Observability, and checks the spans that it exports, and the headers of its events.

Usage: traces.py PROGRAM. Tests/receiver/otlp.py judges the requests by the schema of OTLP; it answers the first one with 503.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
STEP = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
UNSAMPLED = "00-11112222333344445555666677778888-00f067aa0ba902b7-00"
TRACE, PARENT = STEP.split("-")[1:3]


class Events(BaseHTTPRequestHandler):
    """A receiver of events: each one with its header."""

    found = {}

    def log_message(self, *words):
        pass

    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Events.found[event["batch"]] = (self.headers["traceparent"], event)
        self.send_response_only(204)
        self.end_headers()


def wait(what, found):
    for _ in range(1200):
        value = found()
        if value:
            return value
        time.sleep(0.1)
    raise SystemExit(f"traces.py: still not: {what}")


def add(spool, session, step):
    draft = spool / "tmp" / session
    shutil.copytree(ROOT / "fixtures/exact-1fps", draft)
    text = json.loads((draft / "batch.json").read_text())
    (draft / "batch.json").write_text(json.dumps({**text, "session": session, "traceparent": step}))
    draft.rename(spool / "incoming" / session)


def check(folder, program):
    spool, log = folder / "spool", folder / "spans"
    for state in ("tmp", "incoming"):
        (spool / state).mkdir(parents=True)
    log.touch()
    add(spool, "traced", STEP)
    add(spool, "unsampled", UNSAMPLED)
    (spool / "incoming/broken.tar").write_text("no archive")

    collector = subprocess.Popen(["/usr/bin/python3", "-B", ROOT / "Tests/receiver/otlp.py", "--listen", "0", log],
                                 stdout=subprocess.PIPE, text=True)
    events = ThreadingHTTPServer(("127.0.0.1", 0), Events)
    threading.Thread(target=events.serve_forever, daemon=True).start()
    environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{int(collector.stdout.readline())}",
                   "OTEL_SERVICE_NAME": "replay"}
    with open(folder / "log", "w") as errors:
        worker = subprocess.Popen([program, "--spool", spool, "--notify", f"http://127.0.0.1:{events.server_port}/",
                                   "--log-level", "info"], env=environment, stderr=errors)
    try:
        wait("three events", lambda: len(Events.found) == 3)
        spans = wait("the spans of two batches", lambda: (
            lambda all: all if sum(span["name"] == "batch" for span in all) == 2 else None)(
                [json.loads(line) for line in log.read_text().splitlines()]))
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    finally:
        worker.kill()
        collector.kill()
    return spans, (folder / "log").read_text()


def main():
    with tempfile.TemporaryDirectory() as folder:
        spans, text = check(Path(folder), Path(sys.argv[1]).resolve())
    assert "traces.exported" in text and "traces.lost" not in text and "traces.off" not in text, text
    traced = {span["name"]: span for span in spans if span["trace"] == TRACE}
    assert set(traced) == {"batch", "claim", "read", "encode", "decode", "publish", "notify"}, sorted(traced)
    batch = traced["batch"]
    assert batch["parent"] == PARENT and batch["kind"] == "SPAN_KIND_CONSUMER", batch
    assert batch["attributes"] == {
        "encoder_worker.batch": "traced", "encoder_worker.sessions": ["traced"], "encoder_worker.segments": 3,
        "encoder_worker.frames": 12}, batch
    assert batch["status"] == "STATUS_CODE_UNSET" and batch["resource"]["service.name"] == "replay", batch
    for name, span in traced.items():
        outer = {"batch": PARENT, "decode": traced["encode"]["id"]}.get(name, batch["id"])
        assert span["parent"] == outer and span["start"] >= batch["start"], span
    for name in ("encode", "publish"):
        assert traced[name]["attributes"] == {"encoder_worker.session": "traced"}, traced[name]
    header, event = Events.found["traced"]
    assert header == f"00-{TRACE}-{batch['id']}-01" and event["traceparent"] == STEP, (header, event)

    # Without a trace of the producer, one begins here.
    (broken,) = [span for span in spans if span["name"] == "batch" and span["trace"] != TRACE]
    assert broken["parent"] == "" and broken["status"] == "STATUS_CODE_ERROR" and "broken.tar" in broken["message"], broken
    assert [event[0] for event in broken["events"]] == ["exception"], broken
    header, event = Events.found["broken.tar"]
    assert header == f"00-{broken['trace']}-{broken['id']}-01" and "traceparent" not in event, (header, event)

    # A trace that the producer does not record is not exported, and goes on.
    assert all(span["trace"] != UNSAMPLED.split("-")[1] for span in spans)
    header, event = Events.found["unsampled"]
    assert header[:36] == UNSAMPLED[:36] and header[36:] != UNSAMPLED[36:] and header.endswith("-00"), header
    print("traces: the spans of a worker are those of its batches, in the traces of their producers")


main()
