"""A storm on `run --ingest`: producers send batches while the worker and the clients are killed, and the disk fills up. Each batch that
was answered with 201 is published once, no other content is, and nothing is left.

    ingest.py [--producers 200] [--batches 20000] [--kills 200] [--client-kills 200] [--full 2] [--seed 1]
"""
import argparse
import glob
import http.client
import io
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

import spool as spools

START = spools.START
PICTURE = os.path.join(spools.FIXTURES, "exact-1fps", "0000.jpg")


def batch(producer, number):
    """A tar of one picture, two seconds after that of the batch before."""
    instant = START + 2000 * number
    with open(PICTURE, "rb") as file:
        picture = file.read()
    described = {"version": 1, "session": f"producer-{producer}", "endMs": instant + 2000,
                 "frames": [{"file": "a.jpg", "timeMs": instant}]}
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as tar:
        for name, data in (("a.jpg", picture), ("batch.json", json.dumps(described).encode())):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return body.getvalue()


class Worker:
    """The worker, which is started again at the same port after each kill."""

    def __init__(self, path, log):
        self.path, self.log = path, log
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            spools.command(self.path, "--ingest", str(self.port)), stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.start()


class Producer(threading.Thread):
    def __init__(self, number, batches, worker, client_kills):
        super().__init__(daemon=True)
        self.number, self.batches, self.worker = number, batches, worker
        self.random = random.Random(f"{arguments.seed} {number}")
        self.client_kills = client_kills
        self.statuses, self.faults, self.aborted = {}, [], 0

    def run(self):
        for number in range(self.batches):
            body = batch(self.number, number)
            name = f"/v1/batches/{self.number}-{number}.tar"
            end = time.monotonic() + spools.HANG_S
            while time.monotonic() < end:
                if self.aborted < self.client_kills and self.random.random() < 0.2:
                    self.aborted += 1
                    self.abort(name, body)
                status, pause = self.put(name, body)
                if status in (200, 201):
                    self.statuses[number] = status
                    break
                if status and status not in (408, 429, 503):
                    self.faults.append(f"{name}: {status}")
                    break
                time.sleep(pause)
            else:
                self.faults.append(f"{name}: no answer in {spools.HANG_S} s")

    def put(self, name, body):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.worker.port, timeout=60)
            connection.request("PUT", name, body)
            answer = connection.getresponse()
            answer.read()
            connection.close()
            return answer.status, min(2, int(answer.getheader("Retry-After") or 1))
        except (OSError, http.client.HTTPException):
            return None, 0.1

    def abort(self, name, body):
        """Sends a part of a request, as a client that is killed."""
        try:
            with socket.create_connection(("127.0.0.1", self.worker.port), timeout=10) as client:
                head = f"PUT {name} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                client.sendall((head + body)[:self.random.randrange(1, len(head) + len(body))])
        except OSError:
            pass


def fill(spool):
    """Fills the disk for two seconds."""
    filler = os.path.join(os.path.dirname(spool), "filler")
    with open(filler, "wb") as file:
        try:
            while True:
                file.write(bytes(1 << 20))
                file.flush()
        except OSError:
            pass
    time.sleep(2)
    os.unlink(filler)


def waits(spool):
    return [name for state in ("incoming", "tmp") for name in os.listdir(os.path.join(spool, state))] + \
        glob.glob(os.path.join(spool, "claimed", "*", "*", "*"))


def retry(spool):
    """Queues the batches again whose workers were killed three times in a row. Returns their number."""
    killed = []
    for path in glob.glob(os.path.join(spool, "quarantine", "*.reason.json")):
        with open(path) as file:
            if "workers died" in file.read():
                killed.append(os.path.basename(path).removesuffix(".reason.json"))
    if killed:
        subprocess.run([spools.worker(), "quarantine", "retry", "--spool", spool, *killed], check=True, capture_output=True)
    end = time.monotonic() + spools.HANG_S
    while killed and time.monotonic() < end and waits(spool):
        time.sleep(0.2)
    return len(killed)


def check(spool, producers):
    """Returns the faults."""
    faults = [fault for producer in producers for fault in producer.faults]
    for state in ("incoming", "tmp", "quarantine"):
        faults += [f"{state}/{name} is left" for name in os.listdir(os.path.join(spool, state))]
    for producer in producers:
        found = []
        for path in glob.glob(os.path.join(spool, "output", f"producer-{producer.number}", "segment-*.json")):
            with open(path) as file:
                found += [frame["timeMs"] for frame in json.load(file)["frames"] if frame["status"] == "captured"]
        wanted = [START + 2000 * number for number in sorted(producer.statuses)]
        if sorted(found) != wanted:
            faults.append(f"producer {producer.number}: {len(wanted)} batches answered, {len(found)} pictures published")
    return faults


def storm():
    with tempfile.TemporaryDirectory(prefix="torture-") as scratch:
        is_mounted = arguments.full > 0 and not spools.mount("-t", "tmpfs", "-o", f"size={arguments.size}m", "torture", scratch)
        try:
            spool = spools.make(os.path.join(scratch, "spool"))
            with tempfile.NamedTemporaryFile(prefix="torture-") as log:
                return run(spool, log, is_mounted)
        finally:
            if is_mounted:
                subprocess.run(["umount", "-l", scratch], check=True)


def run(spool, log, is_mounted):
    worker = Worker(spool, log)
    each = arguments.batches // arguments.producers
    producers = [Producer(number, each, worker, 1 + arguments.client_kills // arguments.producers)
                 for number in range(arguments.producers)]
    for producer in producers:
        producer.start()
    chance = random.Random(arguments.seed)
    events = ["kill"] * arguments.kills + ["full"] * (arguments.full if is_mounted else 0)
    chance.shuffle(events)
    for event in events:
        time.sleep(chance.uniform(0.2, 1.5))
        worker.kill() if event == "kill" else fill(spool)
    for producer in producers:
        producer.join()
    end = time.monotonic() + spools.HANG_S
    left = None
    while time.monotonic() < end and (names := waits(spool)):
        if left != len(names):
            left, end = len(names), time.monotonic() + spools.HANG_S
        time.sleep(0.2)
    retried = retry(spool)
    worker.process.terminate()
    status = worker.process.wait()
    faults = check(spool, producers) + ([f"the worker ended with {status}"] if status else [])
    answers = [status for producer in producers for status in producer.statuses.values()]
    for fault in faults[:50]:
        print(f"ingest: {fault}")
    if faults:
        log.flush()
        with open(log.name) as text:
            print(text.read()[-3000:])
    print(f"ingest: {len(answers)} batches taken ({answers.count(200)} of them known), {len(events)} kills and full disks, "
          f"{sum(producer.aborted for producer in producers)} clients killed, {retried} retried, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--producers", type=int, default=200)
    parser.add_argument("--batches", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--client-kills", type=int, default=200)
    parser.add_argument("--full", type=int, default=2)
    parser.add_argument("--size", type=int, default=2_048, help="MiB of the disk that fills up")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    sys.exit(storm())
