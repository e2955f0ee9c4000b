"""Runs programs and measures them: CPU, memory, wall-clock time. For the parts of bench.py."""

import contextlib
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The peak memory of a new process includes that of the process that started it. So a small process starts the programs.
LAUNCHER = """
import json, os, sys, time
start = time.monotonic()
child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(child, 0)
wall = time.monotonic() - start
with open(sys.argv[1], "w") as log:
    json.dump([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, wall], log)
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""
START = 1_767_859_512_340
# CPU seconds (user + system) with all processes that the program waited for, the peak RSS of the largest of them in MB,
# wall-clock seconds, the text on standard error, and the instructions if a meter counted them (meters.py).
Used = namedtuple("Used", "cpu memory wall errors instructions", defaults=(None,))


def together(commands, script=None):
    """Runs commands at the same time, each with this script on standard input. Returns a Used for each."""
    with contextlib.ExitStack() as stack:
        running = []
        for command in commands:
            log = stack.enter_context(tempfile.NamedTemporaryFile("r"))
            errors = stack.enter_context(tempfile.TemporaryFile("w+"))
            text = stack.enter_context(open(script or os.devnull))
            launcher = [sys.executable, "-I", "-S", "-c", LAUNCHER, log.name, *map(str, command)]
            running.append((command, log, errors, subprocess.Popen(
                launcher, stdin=text, stdout=subprocess.DEVNULL, stderr=errors)))
        result = []
        for status, (command, log, errors, _) in zip([child.wait() for *_, child in running], running):
            errors.seek(0)
            said = errors.read()
            if status:
                sys.exit(f"{' '.join(map(str, command))}: failed\n{said}")
            result.append(Used(*json.load(log), said))
        return result


def run(command, script=None):
    """Runs a command with this script on standard input. Returns its Used."""
    return together([command], script)[0]


def added(runs):
    """Returns the Used of commands that ran one after the other."""
    counts = [one.instructions for one in runs]
    return Used(sum(one.cpu for one in runs), max(one.memory for one in runs), sum(one.wall for one in runs), "",
                None if None in counts else sum(counts))


def at_once(calls):
    """Calls functions on all cores, and returns their results: to count instructions, not to measure time."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [one.result() for one in [pool.submit(call) for call in calls]]


def in_turn(rounds, programs):
    """Calls each named function once a round, every other round in reverse order. Returns the results by name."""
    results = {name: [] for name in programs}
    for turn in range(rounds):
        for name in list(programs)[::-1 if turn % 2 else 1]:
            results[name].append(programs[name]())
    return results


def ratios(above, below):
    """Returns the ratios of two programs that ran in turn: the median, that of the least of each, and all."""
    each = [one / other for one, other in zip(above, below)]
    return {"median": statistics.median(each), "least": min(above) / min(below), "rounds": each}


def new_spool(path):
    shutil.rmtree(path, ignore_errors=True)
    for state in ("incoming", "tmp"):
        (path / state).mkdir(parents=True)
    return path


def batch(path, frames, startMs=None):
    """Makes a batch of copies of these frames: under their own names, or a second apart from an instant on."""
    path.mkdir(parents=True)
    for number, frame in enumerate(frames):
        shutil.copy(frame, path / (frame.name if startMs is None else f"{startMs + number * 1_000}{frame.suffix}"))
    return path


def drain(worker, spool, *options, run=run):
    """Runs a worker until the spool is empty. Returns its Used."""
    return run([worker, "run", "--spool", spool, "--drain", *options])


def machine():
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    version = subprocess.run(["ffmpeg", "-version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[2]
    name = model.group(1) if model else platform.machine()
    return f"{os.cpu_count()} × {name}, Linux {platform.release()}, ffmpeg {version}"


def built():
    return subprocess.run(["swift", "build", "-c", "release", "--show-bin-path"], stdout=subprocess.PIPE, text=True,
                          check=True, cwd=ROOT).stdout.strip() + "/encoder-worker"
