#!/usr/bin/python3
"""Computes the cost of a million sessions a day: cores, requests, bytes, money, and the first bottleneck.

Usage: capacity.py [--short]

Scales the measured costs (results.json, and below) to other sizes, and simulates peaks and failures (simulation.py).
Writes docs/capacity.md, Benchmarks/CAPACITY.md and Benchmarks/capacity.svg. The tables below hold all assumptions: edit
them, rerun. --short simulates a hundredth. --to DIR writes all files there.
"""
import argparse
import dataclasses
import json
import math
import pathlib
import typing

import capacity_page
import simulated_page
from simulation import Mishap, Setup, Simulation

HERE = pathlib.Path(__file__).parent
MEASURED = json.loads((HERE / "results.json").read_text())
JPEG = {session["name"]: session["rows"]["ours"] for session in MEASURED["parts"]["jpeg"]}

# Requests to the queue for a batch of k segments: (fixed, per segment). Measured: REMOTE.md.
REDIS = {"XADD (the producer)": (1, 0), "take (script)": (1, 0), "settle (script)": (1, 0),
         "look for dead workers' and for more (scripts)": (0.05, 0), "renewals, each lease / 3": (0.02, 0)}


class Request(typing.NamedTuple):
    """Requests to the store of one kind: for each batch, for each of its segments, and for each session."""
    kind: str
    batch: float = 0
    segment: float = 0
    session: float = 0

    def of(self, load):
        """Returns the number for a batch."""
        return self.batch + self.segment * load.segmentsABatch + self.session * load.inputs.sessions / load.batches


# Measured: REMOTE.md; the ends of sessions, and packs: LIMITS.md.
BOTH = {
    "PUT batch (the producer)": Request("PUT", 1), "GET batch": Request("GET", 1), "GET index head": Request("GET", 1),
    "GET manifests before it": Request("GET", 1.2), "PUT index head (If-Match)": Request("PUT", 1),
    "HEAD batch": Request("GET", 1), "DELETE batch": Request("DELETE", 1),
}
S3 = BOTH | {
    "HEAD index head, after the views": Request("GET", 1), "PUT videos": Request("PUT", 0, 1), "PUT manifests": Request("PUT", 0, 1),
    "PUT session.json": Request("PUT", 1), "PUT session.ffconcat": Request("PUT", 1), "PUT receipt": Request("PUT", 1),
    "PUT, for the end of a session": Request("PUT", session=4), "GET and HEAD, for the end of a session": Request("GET", session=9),
}
# In addition with --hls.
HLS = {"GET playlist and manifests, `--hls`": Request("GET", 2.8), "PUT playlist and others, `--hls`": Request("PUT", 2.1),
       "PUT fragments, `--hls`": Request("PUT", 0, 1)}
# With --layout packed.
PACKED = BOTH | {
    "PUT pack": Request("PUT", 1), "PUT, for the end of a session, `session.json` and `.ffconcat`": Request("PUT", session=6),
    "GET and HEAD, for the end of a session": Request("GET", session=11),
}
# In addition with --hls. Measured: PackedPlaylistTests.
PACKED_HLS = {
    "PUT playlist, packed with `--hls`": Request("PUT", 1, session=3), "GET playlist and HEAD, packed with `--hls`": Request("GET", 2),
}
# With run --spool --upload: no batch is in the store, and a session is there once it has ended. A pack has ten minutes: 30 batches.
UPLOAD = {
    "PUT pack, `--upload`": Request("PUT", 1 / 30, session=1),
    "GET pack, to compare what is there, `--upload`": Request("GET", 2 / 30, session=2),
    "PUT index head, `session.json` and `.ffconcat`, `--upload`": Request("PUT", session=3),
    "GET and HEAD index head, `--upload`": Request("GET", session=3),
}
# Assumed: a message is sent, received and deleted by a request of its own.
SQS_REQUESTS = 3
# Sessions by content: share, name, bytes of a captured JPEG (the corpus). CPU and bytes a frame are in results.json.
MIX = {"reading (s01)": (0.3, "s01", 126_155), "idle (s02)": (0.3, "s02", 46_990),
       "typing (s04)": (0.2, "s04", 79_304), "scrolling (s08)": (0.2, "s08", 93_493)}


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
    hls: bool = False              # run --hls
    packed: bool = False           # run --layout packed
    upload: bool = False           # run --spool --upload
    localHours: float = 1          # with --upload: the time for which a session lies on a worker's disk
    # Measured: costs other than the pictures.
    batchMs: float = MEASURED["parts"]["batches"]["overhead"]["require"]["disk"]  # CPU, one segment, with fsync
    decoderMs: float = 3           # CPU of a new decoder process, 2 to 4: batches of a session are too far apart for the old one
    segmentMs: float = 0.44        # CPU of each further segment: REMOTE.md, batches of 1 and of 12
    manifestBytes: float = 1_400   # of a segment: 22 558 / 16 in s01
    indexBytes: float = 218        # of a segment in session.json: 3 484 / 16
    workerMB: float = MEASURED["parts"]["jobs"]["memory"]["of s01"]  # with --jobs 2
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


@dataclasses.dataclass(frozen=True)
class Price:
    dollars: float
    source: str


# List prices in US dollars, us-east-1, without discounts. They are inputs: put in your own.
PRICES = {
    "arm64, a vCPU for an hour": Price(0.0408, "m7g.large, $0.0816 on demand; factualminds.com, June 2026"),
    "x86, a vCPU for an hour": Price(0.0504, "m7i.xlarge, $0.2016 on demand; c3x.dev, read in November 2026"),
    "1 000 PUT": Price(0.005, "S3 Standard; c3x.dev, read in November 2026"),
    "1 000 GET or HEAD": Price(0.0004, "S3 Standard; c3x.dev, read in November 2026"),
    "1 000 DELETE": Price(0.0, "S3"),
    "a GB stored for a month": Price(0.023, "S3 Standard, first 50 TB; coldsmokeconsulting.com, April 2026"),
    "a GB of a worker's disk for a month": Price(0.08, "assumed, for EBS gp3"),
    "1 000 000 SQS requests": Price(0.40, "standard queue; cloudburn.io, March 2026"),
    "Redis with a replica, an hour": Price(0.25, "assumed"),
    "a GB to viewers": Price(0.09, "S3 to the internet, first 10 TB; devnotes.tech, read in November 2026"),
}
KINDS = {"PUT": "1 000 PUT", "GET": "1 000 GET or HEAD", "DELETE": "1 000 DELETE"}


class Load:
    """The totals that follow from the inputs."""

    def __init__(self, inputs):
        self.inputs = i = inputs
        total = lambda value: sum(share * value(name, captured) for share, name, captured in MIX.values())
        self.frames = i.sessions * i.minutes * 60 * i.framesASecond
        self.batches = i.sessions * i.minutes * 60 / i.batchSeconds
        self.segmentsABatch = i.batchSeconds / i.segmentSeconds
        self.segments = self.batches * self.segmentsABatch
        self.frameMs = total(lambda name, _: JPEG[name]["cpu"])
        self.bytesAFrame = total(lambda name, _: JPEG[name]["bytes"])
        self.capturedBytes = total(lambda _, captured: captured)
        self.table = UPLOAD if i.upload else (PACKED if i.packed else S3) | ({} if not i.hls else PACKED_HLS if i.packed else HLS)
        self.requests = {kind: 0.0 for kind in KINDS}
        for request in self.table.values():
            self.requests[request.kind] += self.batches * request.of(self)
        self.redis = {name: self.batches * (fixed + each * self.segmentsABatch) for name, (fixed, each) in REDIS.items()}
        if i.upload: self.redis = {}
        self.sqs = 0 if i.upload else self.batches * SQS_REQUESTS
        # The first PUT is the producer's.
        own = {**self.requests, "PUT": self.requests["PUT"] - (0 if i.upload else self.batches)}
        self.requestsABatch = sum(own.values()) / self.batches
        self.pictureMs = i.batchSeconds * i.framesASecond * self.frameMs
        self.ownMs = i.batchMs + i.decoderMs + i.segmentMs * max(0, self.segmentsABatch - 1)
        self.cpu = (self.pictureMs + self.ownMs + self.requestsABatch * i.requestCPUMs) / 1e3
        # A thread of its own waits for an upload.
        self.wait = 0 if i.upload else (own["GET"] * i.getMs + (own["PUT"] + own["DELETE"]) * i.putMs) / self.batches / 1e3
        self.bytesIn = self.frames * self.capturedBytes
        # Each batch rewrites the session's index: half of its final size on average.
        self.indexWritten = self.batches * i.indexBytes * i.minutes * 60 / i.segmentSeconds / 2
        # The fragments of hls/ have the bytes of the videos again.
        self.bytesKept = self.frames * self.bytesAFrame * (2 if i.hls and not i.packed else 1) + self.segments * (i.manifestBytes + i.indexBytes)
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

    def costs(self, machine="arm64"):
        """Returns US dollars a day, by part; the number of cores follows the load of each hour."""
        i = self.inputs
        hours = sum(max(1, self.meanCores * self.share(hour) / i.used) for hour in range(24))
        price = lambda name: PRICES[name].dollars
        return {
            f"compute, {machine}": hours * price(f"{machine}, a vCPU for an hour"),
            **{f"{kind} requests": self.requests[kind] / 1e3 * price(name) for kind, name in KINDS.items()},
            "disks of workers": (self.bytesKept + self.bytesIn) * i.localHours / 24 / 1e9 * price("a GB of a worker's disk for a month") / 30.4
            if i.upload else 0,
            "SQS": self.sqs / 1e6 * price("1 000 000 SQS requests"),
            f"storage, {i.retention:.0f} days kept": self.bytesKept * i.retention / 1e9 * price("a GB stored for a month") / 30.4,
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


def page(load):
    """Returns docs/capacity.md."""
    return capacity_page.page(load, Load, PRICES)


def inputs(load):
    """Returns the sections of CAPACITY.md with the arithmetic of docs/capacity.md."""
    return capacity_page.inputs(load, Load, (S3 | HLS, PACKED | PACKED_HLS, UPLOAD), REDIS, SQS_REQUESTS, MIX, JPEG, PRICES, MEASURED)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--to", type=pathlib.Path, metavar="DIR")
    options = parser.parse_args()
    load = Load(Inputs())
    scale = 200 if options.short else 10
    days = {cores: day(load, 2 * scale, cores) for cores in (1.0, 1.4, 1.8, 2.0, load.peak / load.inputs.used)}
    events = {name: event(load, scale, name) for name in EVENTS}
    for run in [*days.values(), *events.values()]:
        if len(run.born) != len(run.delays) + run.owed:
            raise SystemExit("capacity: the simulation has lost a batch")
    (options.to or HERE.parent / "docs").joinpath("capacity.md").write_text(page(load))
    (options.to or HERE).joinpath("CAPACITY.md").write_text(simulated_page.page(load, days, events, scale) + inputs(load))
    simulated_page.chart(days, events, scale, (options.to or HERE) / "capacity.svg")


if __name__ == "__main__":
    main()
