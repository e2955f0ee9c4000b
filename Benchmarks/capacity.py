#!/usr/bin/python3
"""Estimates the needs of a million sessions a day: cores, Redis, requests, bytes, money, and the first bottleneck.

Usage: capacity.py [--short]

Scales the measured costs (RESULTS.md, and below) to other sizes, and simulates peaks and failures (simulation.py).
Writes Benchmarks/CAPACITY.md and Benchmarks/capacity.svg. The tables below hold all assumptions: edit them, rerun.
--short simulates a hundredth.
"""
import argparse
import dataclasses
import math
import pathlib

import capacity_page
from simulation import Mishap, Setup, Simulation

# Requests to the queue and the store for a batch of k segments: (fixed, per segment). Measured: REMOTE.md.
REDIS = {"XADD (the producer)": (1, 0), "take (script)": (1, 0), "settle (script)": (1, 0),
         "look for dead workers' and for more (scripts)": (0.05, 0), "renewals, each lease / 3": (0.02, 0)}
S3 = {
    "PUT batch (the producer)": ("PUT", 1, 0), "GET batch": ("GET", 1, 0), "GET index head": ("GET", 1, 0),
    "HEAD index head, after the views": ("GET", 1, 0), "GET manifests before it": ("GET", 1.2, 0), "PUT videos": ("PUT", 0, 1),
    "PUT manifests": ("PUT", 0, 1), "PUT index head (If-Match)": ("PUT", 1, 0), "PUT session.json": ("PUT", 1, 0),
    "PUT session.ffconcat": ("PUT", 1, 0),
    "PUT receipt": ("PUT", 1, 0), "HEAD batch": ("GET", 1, 0), "DELETE batch": ("DELETE", 1, 0),
}
# Sessions by content: share, CPU ms and bytes a frame (RESULTS.md), bytes of a captured JPEG (the corpus).
MIX = {"reading (s01)": (0.3, 9.71, 19_268, 126_155), "idle (s02)": (0.3, 1.00, 4_384, 46_990),
       "typing (s04)": (0.2, 9.51, 6_170, 79_304), "scrolling (s08)": (0.2, 8.84, 30_122, 93_493)}


@dataclasses.dataclass(frozen=True)
class Inputs:
    # Assumed: the recordings.
    sessions: float = 1e6          # a day
    minutes: float = 5             # mean length of a session: a median of 3, a logarithmic spread of 1
    framesASecond: float = 1
    batchSeconds: float = 20       # recorders send 10 to 30 frames (OpenReplay)
    segmentSeconds: float = 5
    swing: float = 0.8             # the busiest hour has 1 + swing times the mean, the quietest 1 - swing
    busiest: int = 20              # o'clock
    # Measured: costs other than the pictures.
    batchMs: float = 6.38          # CPU, RESULTS.md, with fsync and the decoder process
    manifestBytes: float = 1_400   # of a segment: 22 558 / 16 in s01
    indexBytes: float = 218        # of a segment in session.json: 3 484 / 16
    workerMB: float = 89           # with --jobs 2
    encoderMB: float = 20          # for each additional job: an encoder and three pictures (LIMITS.md)
    # Measured: Redis 7.0.15, 100 000 entries with names of 60 bytes, append-only file, one client on the same two cores.
    entryBytes: float = 82
    pendingBytes: float = 85
    appendedBytes: float = 654     # XADD 84, claim and acknowledge 570, with names of 10 bytes
    redisUs: float = 320           # total CPU of Redis for a batch, as REMOTE.md measures it; half of that in scripts
    # Assumed: the store and the machines.
    requestCPUMs: float = 0.4      # of the worker, TLS included
    getMs: float = 20              # latency of a GET
    putMs: float = 35
    used: float = 0.7              # share of the cores in use in the busiest hour; the rest works off a backlog
    coresAWorker: int = 8
    retention: float = 30          # days
    putsAPrefix: float = 3_500     # a second, as AWS documents for each prefix; and 5 500 GET
    nfsCallsABatch: float = 118    # measured by `make nightly-nfs`: NFS 4.2, batches of two and seven frames, one worker
    nfsCallsASecond: float = 20_000


# List prices in US dollars for us-east-1 in 2025, from memory, not verified since. They are inputs: put in your own.
PRICES = {"a core for an hour": 0.0425, "Redis with a replica, an hour": 0.25, "1 000 PUT": 0.005, "1 000 GET": 0.0004,
          "1 000 DELETE": 0.0, "a GB stored for a month": 0.022}


class Load:
    """The totals that follow from the inputs."""

    def __init__(self, inputs):
        self.inputs = i = inputs
        total = lambda column: sum(row[0] * row[column] for row in MIX.values())
        self.frames = i.sessions * i.minutes * 60 * i.framesASecond
        self.batches = i.sessions * i.minutes * 60 / i.batchSeconds
        self.segmentsABatch = i.batchSeconds / i.segmentSeconds
        self.segments = self.batches * self.segmentsABatch
        self.frameMs, self.bytesAFrame, self.capturedBytes = total(1), total(2), total(3)
        self.requests = {kind: 0.0 for kind in ("PUT", "GET", "DELETE")}
        for kind, fixed, each in S3.values():
            self.requests[kind] += self.batches * (fixed + each * self.segmentsABatch)
        self.producers = self.batches
        self.redis = {name: self.batches * (fixed + each * self.segmentsABatch) for name, (fixed, each) in REDIS.items()}
        own = {**self.requests, "PUT": self.requests["PUT"] - self.producers}
        self.requestsABatch = sum(own.values()) / self.batches
        self.cpu = (i.batchSeconds * i.framesASecond * self.frameMs + i.batchMs + self.requestsABatch * i.requestCPUMs) / 1e3
        self.wait = (own["GET"] * i.getMs + (own["PUT"] + own["DELETE"]) * i.putMs) / self.batches / 1e3
        self.bytesIn = self.frames * self.capturedBytes
        # Each batch rewrites the session's index: half of its final size on average.
        self.indexWritten = self.batches * i.indexBytes * i.minutes * 60 / i.segmentSeconds / 2
        self.bytesKept = self.frames * self.bytesAFrame + self.segments * (i.manifestBytes + i.indexBytes)
        self.peak = 1 + i.swing
        self.batchesAtPeak = self.batches / 86_400 * self.peak
        self.meanCores = self.batches * self.cpu / 86_400
        self.cores = self.meanCores * self.peak / i.used
        self.workers = math.ceil(self.cores / i.coresAWorker)
        # This many concurrent batches keep a core busy while the worker waits for the store.
        self.jobsACore = (self.cpu + self.wait) / self.cpu

    def share(self, hour):
        """Returns the load at an hour of the day, as a ratio to the mean."""
        return 1 + self.inputs.swing * math.cos((hour - self.inputs.busiest) * math.pi / 12)

    def costs(self):
        """Returns US dollars a day, by part; the number of cores follows the load of each hour."""
        i = self.inputs
        hours = sum(max(1, self.meanCores * self.share(hour) / i.used) for hour in range(24))
        return {
            "compute": hours * PRICES["a core for an hour"], "Redis": 24 * PRICES["Redis with a replica, an hour"],
            **{f"{kind} requests": self.requests[kind] / 1e3 * PRICES[f"1 000 {kind}"] for kind in self.requests},
            f"storage, {i.retention:.0f} days kept":
                self.bytesKept * i.retention / 1e9 * PRICES["a GB stored for a month"] / 30.4,
            "egress": 0.0,
        }


def day(load, scale, cores, seed=1):
    """Simulates a day from 04:00, with `cores` times the cores that the mean load needs."""
    amount = load.batches / 86_400 / scale
    slots = max(1, round(load.meanCores * cores * load.jobsACore / scale))
    rate = lambda time: amount * load.share(4 + time / 3_600)
    return Simulation(Setup(rate, amount * load.peak, 86_400, slots, 1, load.cpu + load.wait, seed=seed)).run()


# The failures begin in the busiest hour, at 1 800 s. A spike affects arrivals; the others affect workers, queue or
# store.
EVENTS = {
    "nothing": (),
    "ten times the batches for 5 minutes": "spike",
    "a fifth of the workers die": (Mishap(1_800, "deaths", lasts=60),),
    "a fifth of the workers are frozen for 3 minutes": (Mishap(1_800, "freeze", lasts=180),),
    "half of the workers die, and do not come back": (Mishap(1_800, "deaths", lasts=1e9, share=0.5),),
    "Redis loses all and is away for a minute": (Mishap(1_800, "queue", lasts=60),),
    "the store is 5 times as slow, and fails every other batch, for 10 minutes": (Mishap(1_800, "store", lasts=600, share=5),),
    "all of these but the half, one after the other": (
        Mishap(1_800, "deaths"), Mishap(2_000, "queue", lasts=60), Mishap(2_400, "store", lasts=300, share=5),
        Mishap(3_000, "freeze", lasts=180)),
}


def event(load, scale, name, seed=1):
    """Simulates four hours around the daily peak, with the number of cores that the page recommends."""
    amount = load.batchesAtPeak / scale
    workers = max(2, round(load.workers * load.inputs.coresAWorker / scale))
    slots = max(1, round(load.cores * load.jobsACore / scale / workers))
    spikes = EVENTS[name] == "spike"
    rate = lambda time: amount * (10 if spikes and 1_800 <= time < 2_100 else 1)
    mishaps = () if spikes else EVENTS[name]
    return Simulation(Setup(rate, amount * (10 if spikes else 1), 14_400, workers, slots, load.cpu + load.wait,
                            mishaps=mishaps, seed=seed)).run()


def page(load, days, events, scale):
    return capacity_page.page(load, Load, days, events, scale, REDIS, S3, MIX, PRICES)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path(__file__).parent, metavar="DIR")
    options = parser.parse_args()
    load = Load(Inputs())
    scale = 200 if options.short else 10
    days = {cores: day(load, 2 * scale, cores) for cores in (1.0, 1.4, 1.8, 2.0, load.peak / load.inputs.used)}
    events = {name: event(load, scale, name) for name in EVENTS}
    for run in [*days.values(), *events.values()]:
        if len(run.born) != len(run.delays) + run.owed:
            raise SystemExit("capacity: the simulation has lost a batch")
    (options.to / "CAPACITY.md").write_text(page(load, days, events, scale))
    capacity_page.chart(days, events, scale, options.to / "capacity.svg")


if __name__ == "__main__":
    main()
