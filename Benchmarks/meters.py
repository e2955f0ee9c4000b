"""Ways to measure a program: by the clock, or by the instructions that it runs in user mode. For the parts of bench.py.

A count of instructions does not depend on what else the machine does: two runs of ffmpeg differ by less than .0001, two
of the worker by some .0001. The kernel's own instructions are not in it.
"""

import functools
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import measure

EVENT = "instructions:u"
# The length of a session for valgrind, which takes some thirty times as long.
FRAMES = 15


class Clock:
    """Measures CPU and wall-clock time."""
    # The frames of a session to measure (None: all), and options of the worker.
    frames, options = None, ()
    # Whether the sandbox is measured, too.
    sandboxed = True

    def run(self, command, script=None):
        return measure.run(command, script)

    def program(self, path):
        """Returns a copy of the worker that the meter can run."""
        return path


class Perf(Clock):
    """Counts the instructions of a program and of all its processes."""
    name = f"`perf stat -e {EVENT}`"

    def run(self, command, script=None):
        with tempfile.NamedTemporaryFile("r") as log:
            used = measure.run(["perf", "stat", "-x", ",", "-e", EVENT, "-o", log.name, "--", *command], script)
            counts = numbers(log.read())
        if not counts:
            sys.exit(f"{command[0]}: perf counted nothing")
        return used._replace(instructions=sum(counts))


class Valgrind(Clock):
    """Counts the instructions of a program and of the programs that it starts, on a virtual CPU.

    The sandbox's filter refuses system calls of valgrind's own, so that the worker decodes without it.
    """
    name = "valgrind's callgrind"
    frames, options = FRAMES, ("--sandbox", "off")
    sandboxed = False

    def run(self, command, script=None):
        with tempfile.TemporaryDirectory() as folder:
            options = ["--tool=callgrind", "--trace-children=yes", "--callgrind-out-file=/dev/null"]
            used = measure.run(["valgrind", *options, f"--log-file={folder}/%p", *command], script)
            logs = [path.read_text(errors="replace") for path in Path(folder).iterdir()]
        counts = [re.findall(r"Collected : (\d+)", log) for log in logs]
        if not all(counts) or not counts:
            sys.exit(f"{command[0]}: valgrind counted nothing\n{''.join(logs)}")
        return used._replace(instructions=sum(int(count) for found in counts for count in found))

    @functools.cache
    def program(self, path):
        # Valgrind 3.19 refuses the debugging information of Swift 6.
        copy = Path(tempfile.mkdtemp(prefix="stripped-", dir=self.scratch)) / Path(path).name
        subprocess.run(["strip", "--strip-debug", "-o", copy, path], check=True)
        return copy

    def __init__(self, scratch):
        self.scratch = scratch


def numbers(log):
    """Returns the counts in a log of perf: one, or one for each kind of core."""
    return [int(count) for count in re.findall(rf"^(\d+),.*{EVENT[:-2]}", log, re.MULTILINE)]


def counter(scratch):
    """Returns the meter of instructions that this machine allows."""
    if shutil.which("perf"):
        # Where the CPU has no such counter, perf says so in its log, and ends with 0.
        command = ["perf", "stat", "-x", ",", "-e", EVENT, "--", "true"]
        found = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if found.returncode == 0 and numbers(found.stderr):
            return Perf()
    if not shutil.which("valgrind"):
        sys.exit("cannot count instructions: perf counts none here, and there is no valgrind; run: scripts/setup bench")
    return Valgrind(scratch)
