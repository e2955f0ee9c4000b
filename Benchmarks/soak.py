#!/usr/bin/python3
"""Runs the worker as a service under a steady load, and checks that nothing is lost, and that nothing grows.

    make soak                      an hour of load on a spool, then an hour through a queue and a store
    make soak MINUTES=5            minutes of each
    Benchmarks/soak.py WORKER [--minutes 60] [--parts spool,store] [--corpus DIR] [--to DIR]

500 live sessions hand over a batch of five small frames each five seconds, on a fixed schedule: evenly spread and all
at once, in turn. The worker is restarted twice, once by SIGKILL. Latency is from the rename into incoming/ (with a
queue: the entry in its stream) to the arrival of the batch's event. On a machine that cannot do that many batches,
fewer sessions live: ready batches are drained before each part, and the sessions take at most SHARE of that rate.

The exit status is 1 if a batch was lost, quarantined, or published twice with other content, if the index of a session
differs from its events, if batches still wait in the end, or if memory or open files grow beyond the LIMITS of
soak_figures.py. There is no limit of latency. A run that passes writes SOAK.md and its chart: to Benchmarks
if it has both parts and TRUSTED minutes, else to .build/soak.
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
import scale
import soak_chart
import soak_page
from soak_figures import Part
from soak_load import PHASES, RESTARTS, TICK, Batch, Ledger, Load
from soak_queues import Spool, Store
from soak_worker import Worker, cpu_seconds

ROOT = Path(__file__).resolve().parent.parent
SESSIONS = 500
# The share of the measured rate that the load may take; rounds of the measurement, and batches of each.
SHARE, ROUNDS, READY = 0.85, 5, 300
# Seconds between samples: no divisor of a tick, so that samples fall on all parts of a burst.
SAMPLE_S = 3
# Seconds for the batches that wait after the last arrival.
DRAIN_S = 60
# Live sessions that `verify` reads in the end.
VERIFIED = 25
# Minutes of a run whose page is worth keeping.
TRUSTED = 10
MEMORY = Path("/dev/shm")
# The kinds of queue, and the jobs of the worker: with a store, jobs also wait for answers.
PARTS = {"spool": (Spool, os.cpu_count()), "store": (Store, 2 * os.cpu_count())}


def room():
    """Returns the folder for all files: memory if it has room for an hour."""
    return MEMORY if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30 else Path(tempfile.gettempdir())


def rate(kind, command, place, pictures):
    """Returns the batches a second that the worker publishes when all are ready: the most of some rounds."""
    rates = []
    for turn in range(ROUNDS):
        queue, ledger = kind(place / f"rate-{turn}", pictures), Ledger()
        for number in range(READY):
            batch = Batch(f"{number:03}-rate", 0, False)
            queue.prepare(batch)
            ledger.release(batch, time.monotonic())
            queue.release(batch)
        worker = Worker([*command, *queue.options, "--drain"], queue.environment, ledger.arrive, place / "log")
        worker.process.wait()
        worker.reader.join()
        ends = sorted(map(sum, zip(ledger.releasedAt, ledger.latencies)))
        if len(ends) < READY or ledger.faults:
            sys.exit(f"soak: {READY - len(ends)} of {READY} ready batches are not published: {ledger.faults}")
        rates.append((READY - 1) / (ends[-1] - ends[0]))
        queue.close()
    return max(rates)


def compare_disk(binary, pictures, scratch):
    """Returns the batches a second of ready ones in a spool: in memory, and on a disk; None if the run is on a disk."""
    if not scratch.is_relative_to(MEMORY):
        return None
    rates = []
    for parent in (scratch, ROOT / ".build"):
        place = Path(tempfile.mkdtemp(dir=parent))
        copies = [shutil.copy(picture, place) for picture in pictures]
        rates.append(rate(Spool, [binary, "run", "--json"], place, copies))
        shutil.rmtree(place)
    return rates


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


def soak(name, binary, length, scratch, pictures):
    """Runs one part for `length` seconds. Returns what was measured."""
    kind, jobs = PARTS[name]
    command = [binary, "run", "--json", "--jobs", str(jobs)]
    possible = rate(kind, command, scratch, pictures)
    sessions = min(SESSIONS, int(possible * SHARE * TICK) // 10 * 10)
    print(f"{kind.title}: {possible:.0f} batches a second of ready ones; {sessions} sessions", file=sys.stderr)
    queue, ledger = kind(scratch / name, pictures), Ledger()
    load = Load(queue, ledger, sessions, length // TICK)
    worker = Worker([*command, *queue.options], queue.environment, ledger.arrive, scratch / "log")
    done, failed = threading.Event(), threading.Event()
    start, own = time.monotonic() + 5, time.process_time()
    before = {server: cpu_seconds(process) for server, process in queue.servers.items()}
    controller = threading.Thread(target=control, args=(worker, ledger, start, length, done, failed))
    controller.start()
    try:
        load.run(start, lambda: not failed.is_set())
        end = time.monotonic()
        while ledger.waiting and time.monotonic() < end + DRAIN_S and not failed.is_set():
            time.sleep(0.05)
        drained = time.monotonic()
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
    return Part(kind.title, jobs, possible, sessions, start, length, end, drained, ledger, worker.samples,
                worker.restarts[:len(RESTARTS)], load.lag, cpu, verified)


def real(binary, paths, scratch):
    """Returns the size of captured frames, and CPU ms for a batch of five, by session of the corpus.

    Each batch has a session, and so a decoder, of its own.
    """
    idle = [scale.new_spool(scratch / f"idle-{turn}") for turn in range(3)]
    start = min(scale.cpu([binary, "--spool", spool, "--drain"]) for spool in idle)
    costs = {}
    for path in sorted(paths):
        frames = sorted((path / "jpg").glob("*.jpg"))
        spool, count = scale.new_spool(scratch / path.name), max(1, len(frames) // 5)
        for number in range(count):
            scale.captured(spool, f"s{number:03}", frames[number * 5:number * 5 + 5])
        costs[path.name] = (scale.cpu([binary, "--spool", spool, "--drain", "--jobs", "1"]) - start) * 1e3 / count
    size = subprocess.run(["ffprobe", "-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0:s=x",
                           frames[0]], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    return size.replace("x", "×"), costs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", metavar="WORKER")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--corpus")
    parser.add_argument("--to", type=Path, metavar="DIR")
    options = parser.parse_args()
    length = max(PHASES, round(options.minutes * 60 / TICK)) * TICK
    names = options.parts.split(",")
    isWhole = options.minutes >= TRUSTED and names == [*PARTS]
    target = options.to or (ROOT / "Benchmarks" if isWhole else ROOT / ".build" / "soak")
    for folder in (target, ROOT / ".build"):
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="soak-", dir=room()) as scratch:
        scratch = Path(scratch)
        binary = shutil.copy(options.binary, scratch / "encoder-worker")
        pictures = scale.tiny(scratch / "pictures", "96x160")
        costs = real(binary, remote.corpus(options.corpus, scratch), scratch)
        rates = compare_disk(binary, pictures, scratch)
        parts = [soak(name, binary, length, scratch, pictures) for name in names]
        faults = [f"{part.title}: {fault}" for part in parts for fault in part.faults]
        if faults:
            sys.exit("\n".join(["soak: the run failed", *faults, (scratch / "log").read_text()[-2_000:]]))
        text = soak_page.page(parts, *costs, rates, SHARE, SESSIONS)
    (target / "SOAK.md").write_text(text)
    soak_chart.draw(parts, target / "soak.svg")
    print(text)


if __name__ == "__main__":
    main()
