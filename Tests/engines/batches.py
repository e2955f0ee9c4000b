"""Makes batches for the engines, and computes the output of one undisturbed run."""
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "torture"))
from spool import (  # noqa: E402,F401
    FIXTURES, HANG_S, IS_FULL, ROOT, START, Broken, check_same, check_sessions, digests, names, worker)

EXAMPLES = os.path.join(ROOT, "examples")


def fill(directory, count, sessions=40):
    """Adds `count` batches of 2 or 7 frames, and two that are not complete yet."""
    for number in range(count):
        add(directory, f"s{number % sessions:02}@{number:05}", number, 7 if number % 3 == 0 else 2)
    os.makedirs(os.path.join(directory, ".hidden"))
    with open(os.path.join(directory, "half.tar.part"), "wb") as file:
        file.write(b"half")


def add(directory, name, number, frames):
    folder = os.path.join(directory, name)
    os.makedirs(folder)
    for frame in range(frames):
        time = START + number * 10_000 + frame * 1_000
        shutil.copy(os.path.join(FIXTURES, "exact-1fps", f"{frame:04}.jpg"), os.path.join(folder, f"{time}.jpg"))


def add_held(directory, shard, count):
    """Adds a batch of this shard in the middle of the others. Returns its session."""
    names = (f"s20-{number}" for number in range(1_000))
    name = next(name for name in names if int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % count == shard)
    add(directory, name, 0, 2)
    return name


def hold(output, session):
    """Locks a session, so that its shard's task waits half-way. Closing the returned descriptor unlocks it."""
    os.makedirs(os.path.join(output, session), exist_ok=True)
    descriptor = os.open(os.path.join(output, session), os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def expected(batches, output):
    """Returns the output of one undisturbed run."""
    subprocess.run([worker(), "encode", "--batches", batches, "--output", output], check=True,
                   stdout=subprocess.DEVNULL)
    return digests(output)


def check(output, expected):
    """Checks that the output is equal, that verify finds no fault, and that no staging file is left."""
    check_same(output, expected)
    check_sessions(output)
    if left := names(output, ".staging"):
        raise Broken(f"left in .staging: {', '.join(left)}")


def processes(*words, program=None):
    """Returns the processes whose environment contains all these words: those that a test has started, and their
    children."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/environ", "rb") as file:
                environment = file.read()
            with open(f"/proc/{number}/comm") as file:
                name = file.read().strip()
        except OSError:
            continue
        if all(word.encode() in environment for word in words) and program in (None, name) and int(number) != os.getpid():
            found.append(int(number))
    return found


def end(word):
    """Kills the processes that a test has left behind."""
    while left := processes(word):
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.05)


def encoders(*words):
    """Returns only the encoders, without their decoder processes: some decoders end during the scan."""
    found = processes(*words, program="encoder-worker")
    parents = {process: parent(process) for process in found}
    return [process for process in found if parents[process] not in (None, *found)]


def parent(process):
    """Returns the parent's process id; None if the process has ended."""
    try:
        with open(f"/proc/{process}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("PPid:"))
    except (OSError, StopIteration):
        return None


def until(what, happens):
    """Waits until a condition is true, with a long limit for a loaded machine."""
    end = time.monotonic() + HANG_S
    while not happens():
        if time.monotonic() > end:
            raise Broken(f"waited {HANG_S} s until {what}")
        time.sleep(0.2)
