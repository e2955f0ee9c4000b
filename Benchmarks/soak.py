#!/usr/bin/python3
"""Runs the worker as a service under the load of real screens, and checks that nothing is lost, and that nothing grows.

    make soak                      half an hour of load on a spool, then half an hour through a queue and a store
    make soak MINUTES=6            three minutes of each
    Benchmarks/soak.py WORKER [--minutes 60] [--parts spool,store] [--to DIR]

The worker and its decoders have one CPU. The load, Redis and the store have another one. Live sessions of 750×1334 pixels
(soak_screens.py) hand over a batch of five captures each five seconds, on a fixed schedule: spread and all at once, in
turn. There are as many sessions as need SHARE of the worker's CPU: short loads before each part measure the CPU of a
batch. The worker is restarted twice, once by SIGKILL. Latency is from the rename into incoming/ (with a queue: the entry
in its stream) to the arrival of the batch's event.

The exit status is 1 if a batch was lost, quarantined, or published twice with other content, if the index of a session
differs from its events, if batches still wait in the end, or if memory or open files grow beyond the LIMITS of
soak_figures.py. There is no limit of latency. A run that passes writes SOAK.md and its chart: to Benchmarks
if it has both parts and TRUSTED minutes, else to .build/soak. A run that fails by growth alone writes them to .build/soak.
All other files are in a folder of /var/tmp that is removed.
"""

import argparse
import collections
import contextlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import remote
import soak_chart
import soak_page
import soak_screens
from soak_figures import Part
from soak_load import PHASES, RESTARTS, TICK, Batch, Ledger, Load
from soak_queues import Spool, Store
from soak_worker import Worker, cpu_seconds

ROOT = Path(__file__).resolve().parent.parent
# The CPUs of the load with its servers, and of the worker with its decoders; they differ if there are two.
OWN, WORKERS = remote.CORES[0], remote.CORES[-1]
# The share of its CPU that the worker and its decoders need, and the sessions of the first of the ROUNDS that find it.
SHARE, GUESS, ROUNDS = 0.7, 100, 2
# More than one job, because a job also waits for the disk or the store.
JOBS = 2
# Seconds between samples: no divisor of a tick, so that samples fall on all parts of a burst.
SAMPLE_S = 3
# Seconds for the batches that wait after the last arrival.
DRAIN_S = 60
# Live sessions that `verify` reads in the end.
VERIFIED = 25
# Minutes of a run whose page is worth keeping.
TRUSTED = 20
# The disk has all files: fsync costs as much as in life.
DISK = "/var/tmp"
PARTS = {"spool": Spool, "store": Store}


def start(command, queue, ledger, scratch):
    """Starts a worker on its CPU."""
    return Worker([*command, *queue.options], WORKERS, queue.environment, ledger.arrive, scratch / "log")


def drain(ledger, shouldContinue):
    """Waits until all batches are published. Returns when the last batch arrived, and when the wait was over."""
    end = time.monotonic()
    while ledger.waiting and time.monotonic() < end + DRAIN_S and shouldContinue():
        time.sleep(0.05)
    return end, time.monotonic()


def calibrate(kind, command, scratch, films):
    """Returns the number of live sessions for which the worker and its decoders need SHARE of a CPU."""
    sessions = GUESS
    for turn in range(ROUNDS):
        queue, ledger = kind(scratch / f"{turn}", films), Ledger()
        worker = start(command, queue, ledger, scratch)
        try:
            load = Load(queue, ledger, sessions, PHASES)
            load.run(time.monotonic(), lambda: worker.process.poll() is None)
            drain(ledger, lambda: worker.process.poll() is None)
            if worker.stop("SIGTERM") or ledger.faults or not ledger.latencies:
                sys.exit(f"soak: a short load of {sessions} sessions failed: {ledger.faults}")
        finally:
            worker.process.kill()
            queue.close()
        cost = worker.ended / len(ledger.latencies)
        sessions = max(1, int(SHARE * TICK / cost))
        print(f"{kind.title}: {cost * 1e3:.1f} ms of CPU a batch; {sessions} sessions", file=sys.stderr)
    return sessions


def control(worker, ledger, start, length, done, failed):
    """Samples and restarts the worker until `done`."""
    ticks = length // TICK
    restarts = collections.deque((start + (2 * phase + 1) * ticks // (2 * PHASES) * TICK + after, name)
                                 for phase, after, name in RESTARTS)
    due = start
    while not done.wait(max(0, min(due, restarts[0][0] if restarts else due) - time.monotonic())):
        if worker.process.poll() is not None:
            ledger.fault(f"the worker ended by itself with {worker.process.returncode}")
            failed.set()
            return
        if restarts and time.monotonic() >= restarts[0][0]:
            _, name = restarts.popleft()
            if worker.restart(name) and name == "SIGTERM":
                ledger.fault(f"the worker did not end with 0 after {name}")
        if time.monotonic() >= due:
            due += SAMPLE_S
            with contextlib.suppress(OSError):
                # A worker that is gone is found above.
                worker.sample()


def finish(worker, binary, queue, ledger, load, scratch):
    """Stops the worker, and checks all that is left. Returns the number of segments that `verify` read."""
    if worker.process.poll() is None and worker.stop("SIGTERM"):
        ledger.fault(f"the worker ended with {worker.process.returncode}")
    if ledger.waiting:
        ledger.fault(f"{len(ledger.waiting)} batches are not published {DRAIN_S} s after the last arrival")
    for session in [*ledger.published]:
        load.check(session)
    prepared = {batch.name for batch in load.prepared if batch}
    left = [name for name in queue.leftovers() if name.removeprefix("incoming/") not in prepared]
    if left:
        ledger.fault(f"{len(left)} batches or entries are left: {sorted(left)[:3]}")
    some = random.Random(1).sample(sorted(ledger.published), min(VERIFIED, len(ledger.published)))
    for session in some:
        queue.copy(session, scratch / "verify" / session)
    said = subprocess.run([binary, "verify", *(scratch / "verify" / session for session in some)], capture_output=True,
                          text=True)
    if said.returncode:
        ledger.fault(f"verify: {said.stdout[-500:]}{said.stderr[-500:]}")
    shutil.rmtree(scratch / "verify")
    return len(some), sum(len(ledger.published[session]) for session in some)


def soak(kind, binary, length, scratch, films):
    """Runs one part for `length` seconds. Returns what was measured."""
    command = [binary, "run", "--json", "--jobs", str(JOBS)]
    sessions = calibrate(kind, command, scratch, films)
    queue, ledger = kind(scratch / "part", films), Ledger()
    load = Load(queue, ledger, sessions, length // TICK)
    worker = start(command, queue, ledger, scratch)
    done, failed = threading.Event(), threading.Event()
    begin, own = time.monotonic() + 5, time.process_time()
    before = {server: cpu_seconds(process) for server, process in queue.servers.items()}
    controller = threading.Thread(target=control, args=(worker, ledger, begin, length, done, failed))
    controller.start()
    try:
        load.run(begin, lambda: not failed.is_set())
        end, drained = drain(ledger, lambda: not failed.is_set())
        done.set()
        controller.join()
        cpu = {"the load": time.process_time() - own,
               **{server: cpu_seconds(process) - before[server] for server, process in queue.servers.items()}}
        verified = finish(worker, binary, queue, ledger, load, scratch)
    finally:
        done.set()
        controller.join()
        worker.process.kill()
        queue.close()
    return Part(kind.title, sessions, begin, length, end, drained, ledger, worker.samples,
                worker.restarts[:len(RESTARTS)], load.lag, cpu, verified)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", metavar="WORKER")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--to", type=Path, metavar="DIR")
    options = parser.parse_args()
    names = options.parts.split(",")
    length = max(PHASES, round(options.minutes * 60 / len(names) / TICK)) * TICK
    isWhole = options.minutes >= TRUSTED and names == [*PARTS]
    target = options.to or (ROOT / "Benchmarks" if isWhole else ROOT / ".build" / "soak")
    target.mkdir(parents=True, exist_ok=True)
    # Servers and `verify` inherit it.
    os.sched_setaffinity(0, {OWN})
    with tempfile.TemporaryDirectory(prefix="soak-", dir=DISK) as scratch:
        scratch = Path(scratch)
        binary = shutil.copy(options.binary, scratch / "encoder-worker")
        films = soak_screens.draw(scratch)
        parts = [soak(PARTS[name], binary, length, scratch, films) for name in names]
        faults = [f"{part.title}: {fault}" for part in parts for fault in part.faults]
        if any(part.ledger.faults for part in parts):
            sys.exit("\n".join(["soak: the run failed", *faults, (scratch / "log").read_text()[-2_000:]]))
        text = soak_page.page(parts, soak_screens.facts(films), SHARE, JOBS)
    if faults:
        # The curves show what grew.
        target = options.to or ROOT / ".build" / "soak"
        target.mkdir(parents=True, exist_ok=True)
        text = "\n- ".join(["**The run failed:**\n", *faults]) + "\n\n" + text.replace(", and nothing grew,", "")
    (target / "SOAK.md").write_text(text)
    soak_chart.draw(parts, target / "soak.svg")
    print(text)
    if faults:
        sys.exit("\n".join(["soak: the run failed", *faults]))


if __name__ == "__main__":
    main()
