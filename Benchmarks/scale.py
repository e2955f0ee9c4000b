"""Measures whether the cost of a batch grows with the queue or with its session. For bench.py.

All input is made from tiny pictures, to isolate the cost of a batch from that of its pictures. CPU is user + system
time of the worker and of its decoder processes.
"""

import os
import resource
import shutil
import signal
import subprocess
import time

from measure import START, drain, new_spool, run

FEW, MANY = 100, 100_000
DAY = 17_280


def tiny(folder, size="64x64"):
    """Makes four small pictures."""
    folder.mkdir()
    subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", f"testsrc=size={size}:rate=1", "-frames:v", "4", "-q:v",
                    "5", folder / "%d.jpg"], check=True)
    return sorted(folder.glob("*.jpg"))


def batch(folder, name, pictures, startMs, intervalMs=1_000):
    """Makes a plain batch of links to these pictures."""
    path = folder / name
    path.mkdir()
    for number, picture in enumerate(pictures):
        os.link(picture, path / f"{startMs + number * intervalMs}.jpg")
    return path


def cpu_until(command, done):
    """Runs a command and stops it once `done` holds. Returns CPU seconds with its decoder processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while child.poll() is None and not done():
        time.sleep(0.2)
    child.send_signal(signal.SIGTERM)
    child.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def waiting(worker, pictures, scratch):
    """Measures CPU ms a batch by queue depth, with batches of one picture, each of its own session."""
    idle = new_spool(scratch / "idle")
    start = min(drain(worker, idle).cpu for _ in range(5))
    result = []
    for count in (FEW, MANY):
        costs = []
        for turn in range(5 if count == FEW else 1):
            spool = new_spool(scratch / f"waiting-{count}-{turn}")
            for number in range(count):
                batch(spool / "incoming", f"s{number:06}", [pictures[number % 4]], START)
            done = lambda: count - len(os.listdir(spool / "incoming"))
            spent = cpu_until([worker, "--spool", spool, "--jobs", "1"], lambda: done() >= min(count, 5_000))
            costs.append((spent - start) * 1_000 / done())
            shutil.rmtree(spool)
        result.append(min(costs))
    return result


def growing(worker, pictures, scratch):
    """Measures CPU ms for a batch of one segment, added to a new session and to one of a day, by a worker each."""
    day = scratch / "day"
    parts = [batch(scratch, f"walk@{part:03}", (pictures * 90)[:360], START + part * 360 * 6_000, 6_000)
             for part in range(DAY // 360)]
    run([worker, "encode", *parts, "--output", day])
    result = []
    for output, first in ((scratch / "new", 0), (day, START + DAY * 6_000)):
        spool = new_spool(scratch / f"spool-{output.name}")
        for number in range(400):
            batch(spool / "incoming", f"walk@{number:04}", pictures[:1], (first or START) + number * 1_000)
        result.append(drain(worker, spool, "--output", output, "--jobs", "1").cpu * 1_000 / 400)
        shutil.rmtree(spool)
    return result


def scale(worker, scratch):
    """Returns CPU ms of a batch with few and with many batches waiting, and in a new session and in one of a day."""
    folder = scratch / "scale"
    folder.mkdir()
    pictures = tiny(folder / "tiny")
    few, many = waiting(worker, pictures, folder)
    new, day = growing(worker, pictures, folder)
    shutil.rmtree(folder)
    return {"waiting": {"few": FEW, "many": MANY, "cpu": [few, many]}, "segments": {"many": DAY, "cpu": [new, day]}}
