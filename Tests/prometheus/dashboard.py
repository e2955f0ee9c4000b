"""Runs every query of the dashboard, and every alert rule, in a real Prometheus that scrapes a worker.

The worker encodes batches from its spool and over HTTP, and sends events to a receiver. A query has to return a number,
and nothing for another job. Each rule has to be evaluated without an error. Usage: ENCODER_WORKER=PROGRAM dashboard.py
"""
import contextlib
import http.server
import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
JOB = "encoder-worker"
# Only a hang takes this long.
DEADLINE_S = 300
CONFIGURATION = """
global: {{ scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: {job}
    static_configs: [ {{ targets: ["127.0.0.1:{metrics}", "127.0.0.1:{ingest}"] }} ]
"""
# Requests to this machine do not go through a proxy.
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *words):
        pass


@contextlib.contextmanager
def running(words, log):
    with open(log, "wb") as file:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                                   env={**os.environ, "no_proxy": "127.0.0.1"})
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait(what, step):
    """Repeats a step until it returns a true value, and returns that."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        if found := step():
            return found
        time.sleep(0.2)
    sys.exit(f"timeout: {what}")


def port(log, pattern, process):
    def look():
        if process.poll() is not None:
            sys.exit(f"ended: {log.read_text()}")
        found = re.search(pattern, log.read_text())
        return found and found[1]
    return wait(pattern, look)


@contextlib.contextmanager
def prometheus(work, **ports):
    """A Prometheus on a free port of this machine. Yields its address."""
    configuration, log = work / "prometheus.yml", work / "prometheus.log"
    configuration.write_text(CONFIGURATION.format(rules=ROOT / "packaging/prometheus-alerts.yaml", job=JOB, **ports))
    for _ in range(20):
        address = f"127.0.0.1:{random.randrange(20_000, 32_000)}"
        words = ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={work / 'data'}",
                 f"--web.listen-address={address}"]
        with running(words, log) as process:
            if wait("Prometheus is ready", lambda: process.poll() is not None or is_ready(address)) and process.poll() is None:
                yield f"http://{address}"
                return
    sys.exit(f"no Prometheus: {log.read_text()}")


def is_ready(address):
    try:
        return direct.open(f"http://{address}/-/ready", timeout=10).status == 200
    except (OSError, urllib.error.URLError):
        return False


def ask(server, path, **parameters):
    """Returns the data of an answer of Prometheus' API. Ends the test if it is an error."""
    query = urllib.parse.urlencode(parameters)
    try:
        with direct.open(f"{server}/api/v1/{path}?{query}", timeout=30) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        sys.exit(f"{path} {parameters}: {error.code}: {error.read().decode()}")


def numbers(server, expression):
    """Returns the numbers of a query, now and over the last minute, by their labels. NaN is no number."""
    now = time.time()
    series = ask(server, "query", query=expression, time=now)["result"]
    ranges = ask(server, "query_range", query=expression, start=now - 60, end=now, step=1)["result"]
    found = {json.dumps(one["metric"], sort_keys=True): float(one["value"][1]) for one in series}
    shown = {json.dumps(one["metric"], sort_keys=True) for one in ranges}
    return {labels: value for labels, value in found.items() if math.isfinite(value) and labels in shown}


def add(spool, number):
    draft = spool / "tmp" / f"batch-{number}"
    shutil.copytree(ROOT / "fixtures/exact-1fps", draft)
    text = json.loads((draft / "batch.json").read_text())
    (draft / "batch.json").write_text(json.dumps({**text, "session": f"session-{number}"}))
    draft.rename(spool / "incoming" / draft.name)


def put(ingest, number):
    body = subprocess.run(["tar", "-C", ROOT / "fixtures/gap", "--mtime", f"@{number}", "-cf", "-", "."], check=True,
                          capture_output=True).stdout
    request = urllib.request.Request(f"http://127.0.0.1:{ingest}/v1/batches/gap-{number}.tar", body,
                                     {"Content-Type": "application/octet-stream"}, method="PUT")
    return direct.open(request, timeout=60).status


def check(server, spool, ingest):
    dashboard = json.loads((ROOT / "packaging/grafana-dashboard.json").read_text())
    targets = [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel["targets"]]
    if len(targets) < 20 or not all("$job" in expression for _, expression in targets):
        sys.exit("the dashboard lacks queries, or a query ignores the job")
    # Grafana's label_values(METRIC, LABEL).
    metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", dashboard["templating"]["list"][1]["query"]["query"]).groups()
    wait("the job is known", lambda: ask(server, f"label/{label}/values", **{"match[]": metric}) == [JOB])
    # Rates need two samples, and quantiles a batch between them.
    count, silent = 0, targets
    end = time.monotonic() + DEADLINE_S
    while silent and time.monotonic() < end:
        count += 1
        add(spool, count)
        if put(ingest, count) != 201:
            sys.exit("the ingest listener refuses a batch")
        time.sleep(2)
        silent = [(title, expression) for title, expression in silent if not numbers(server, expression.replace("$job", JOB))]
    if silent:
        sys.exit("no number: " + "; ".join(f"{title}: {expression}" for title, expression in silent))
    for title, expression in targets:
        if not numbers(server, expression.replace("$job", ".*")):
            sys.exit(f"{title}: no number for all jobs")
        if numbers(server, expression.replace("$job", "other")):
            sys.exit(f"{title}: shows another job")
    check_values(server, count)
    rules = [rule for group in ask(server, "rules")["groups"] for rule in group["rules"]]
    wrong = [f"{rule['name']}: {rule['health']} {rule.get('lastError', '')}" for rule in rules if rule["health"] != "ok"]
    # A worker that is well fires none.
    wrong += [f"{rule['name']}: {rule['state']}" for rule in rules if rule["state"] == "firing"]
    if wrong or len(rules) < 10:
        sys.exit("alert rules: " + "; ".join(wrong))
    print(f"dashboard: {len(targets)} queries and {len(rules)} alert rules answer in Prometheus")


def check_values(server, count):
    """Compares some numbers with those that the worker must have."""
    wait("no batch waits", lambda: numbers(server, 'sum(encoder_worker_batches{state=~"waiting|claimed"})') == {"{}": 0})
    # All bodies have the same frames.
    for expression, wanted in ((f'sum(up{{job="{JOB}"}})', 2), ("sum(encoder_worker_ready)", 1),
                               ('encoder_worker_ingest_requests_total{outcome="taken"}', count),
                               ('encoder_worker_batches_total{outcome="published"}', count + 1),
                               ('encoder_worker_batches_total{outcome="duplicate"}', count - 1)):
        wait(f"{expression} is {wanted}", lambda: list(numbers(server, expression).values()) == [wanted])


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        spool, log = work / "spool", work / "worker.log"
        (spool / "tmp").mkdir(parents=True)
        (spool / "incoming").mkdir()
        receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        words = [os.environ["ENCODER_WORKER"], "run", "--spool", str(spool), "--listen", "127.0.0.1:0", "--ingest", "127.0.0.1:0",
                 "--notify", f"http://127.0.0.1:{receiver.server_port}/"]
        with running(words, log) as worker:
            metrics = port(log, r"listening at http://127\.0\.0\.1:(\d+)/", worker)
            ingest = port(log, r"taking batches at http://127\.0\.0\.1:(\d+)/", worker)
            with prometheus(work, metrics=metrics, ingest=ingest) as server:
                check(server, spool, ingest)


if __name__ == "__main__":
    main()
