"""The worker of soak.py: its start and stop, its events, and samples of its processes."""

import dataclasses
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from frames import family

TICKS = os.sysconf("SC_CLK_TCK")
PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6


@dataclasses.dataclass
class Sample:
    at: float
    # CPU seconds since the start of the part: of the worker with its decoders; since the start of the machine: of all
    # processes, of those on the worker's CPU, and those of this CPU that the host gave to other machines.
    cpu: float
    machine: float
    core: float
    stolen: float
    # MB: resident pages of the worker, and pages of worker and decoders that are not of files, shared ones once.
    rss: float
    memory: float
    # Descriptors of the worker and of the process that forks decoders.
    descriptors: int


@dataclasses.dataclass
class Restart:
    signal: str
    at: float
    # Seconds until the worker has ended.
    endS: float


def cpu_seconds(process):
    """Returns the CPU of a process and of its ended children; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15])) / TICKS


def machine_seconds(cpu=""):
    """Returns the seconds that all CPUs or one have worked, and those that the host has taken from them."""
    lines = (line.split() for line in Path("/proc/stat").read_text().split("\n"))
    fields = next(fields[1:] for fields in lines if fields[:1] == [f"cpu{cpu}"])
    user, nice, system, _, _, interrupts, soft, stolen = map(int, fields[:8])
    return (user + nice + system + interrupts + soft) / TICKS, stolen / TICKS


def resident(process):
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE_MB


def own_pages(process):
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    lines = [line.split() for line in text.split("\n") if line.startswith(("Pss_Anon:", "Pss_Shmem:"))]
    return sum(int(size) for _, size, _ in lines) * 1_024 / 1e6


def descriptors(process):
    try:
        return len(os.listdir(f"/proc/{process}/fd"))
    except OSError:
        return 0


class Worker:
    """One worker after the other, with the same options, on one CPU."""

    def __init__(self, command, core, environment, arrive, log):
        self.command, self.core = ["taskset", "-c", str(core), *command], core
        self.environment, self.arrive, self.log = {**os.environ, **environment}, arrive, log
        self.samples, self.restarts = [], []
        # CPU seconds of the workers before this one.
        self.ended = 0
        self.begin()

    def begin(self):
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(self.command, env=self.environment, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=log)
        self.reader = threading.Thread(target=self.read, args=(self.process.stdout,), daemon=True)
        self.reader.start()

    def read(self, lines):
        for line in lines:
            now = time.monotonic()
            # A killed worker may leave a part of a line.
            if line.endswith(b"\n"):
                self.arrive(now, json.loads(line))

    def family(self):
        """Returns the worker, the process that forks decoders, and the decoders."""
        while True:
            try:
                return family(self.process.pid)
            except OSError:
                # A decoder ended meanwhile.
                continue

    def cpu(self):
        return self.ended + sum(map(cpu_seconds, self.family()))

    def sample(self):
        processes = self.family()
        self.samples.append(Sample(
            time.monotonic(), self.cpu(), machine_seconds()[0], *machine_seconds(self.core), resident(self.process.pid),
            sum(map(own_pages, processes)), sum(map(descriptors, processes[:2]))))

    def stop(self, name):
        """Sends a signal, and waits until the worker has ended and all its events are read."""
        self.ended, sent = self.cpu(), time.monotonic()
        self.process.send_signal(getattr(signal, name))
        self.process.wait()
        self.restarts.append(Restart(name, sent, time.monotonic() - sent))
        self.reader.join()
        return self.process.returncode

    def restart(self, name):
        status = self.stop(name)
        self.begin()
        return status
