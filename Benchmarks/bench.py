#!/usr/bin/python3
"""Compares the worker with stock ffmpeg, over the same frames, in one run.

    make bench                     the sessions of ../shared/corpus, or of fixtures/ if that directory is missing
    make bench CORPUS=DIR          DIR/<session>/jpg/<unix ms>.jpg; lossless originals of the same names in png/
    make bench PARTS="png jobs"    some parts
    make bench ROUNDS=1            fewer rounds: sooner, and less exact
    make bench BASE=PROGRAM        compares this build with another one (compare.py), over PARTS

The parts:
    jpeg, png, webp, large, phone
                             each session beside the ffmpeg recipe and the bare loop (sessions.py, pictures.py)
    sandbox                  the same sessions with and without the sandbox (sessions.py)
    decoding                 decoding and converting a picture (profiles.py)
    batches                  small batches beside a large one; a batch beside its pictures (batches.py)
    jobs                     two jobs and two workers beside one; memory (jobs.py)
    startup                  the start of the program (startup.py)
    finished                 stitch, HLS, verify and reencode, for an hour (finished.py)
    scale                    a long queue, a long session (scale.py)
    profile                  the worker's own profile of a session

CPU is user + system time of a program and of its decoder processes. Compared programs run in turn. Their instructions
are counted in another run (meters.py), but for the parts that measure the wall clock, the worker's own profile or the
kernel: decoding, jobs, scale, profile, and the cost of a batch beside its pictures. A run of all parts over the usual
sessions writes Benchmarks/results.json, and from it the page, the charts and the figures that other pages quote
(page.py), when all is measured. All other runs only print.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import batches
import compare
import finished
import jobs
import limit
import meters
import page
import pictures
import profiles
import scale
import sessions
import startup
from measure import built, machine
from pictures import Session, chosen, frames_of
from summary import KINDS


class Bench:
    """The parts: those that encode sessions, and a method for each of the others. Their numbers are for page.py."""

    def __init__(self, worker, corpus, rounds, scratch):
        self.worker, self.rounds, self.scratch = worker, rounds, scratch
        self.program = limit.build(scratch)
        self.paths = pictures.sessions(pictures.corpus(corpus), scratch)
        self.made = scratch / "made"
        self.meter = meters.counter(scratch)

    def sessions(self, kind):
        """Returns the sessions of a part that encodes sessions."""
        if kind == "jpeg":
            return [Session(path.name, "JPEG", path / "jpg") for path in self.paths]
        return getattr(pictures, kind)(self.paths, self.made)

    def measure(self, part):
        """Returns the numbers of a part."""
        if part in KINDS:
            return sessions.compare(self.meter, self.worker, self.program, self.sessions(part), self.scratch,
                                    self.rounds)
        return getattr(self, part)()

    def sandbox(self):
        return sessions.sandbox(self.meter, self.worker, self.paths, self.scratch, self.rounds)

    def decoding(self):
        made = [session for kind in ("png", "webp", "large") for session in self.sessions(kind)]
        return profiles.decoding(self.worker, self.sessions("jpeg")[:1] + made, self.scratch, self.rounds)

    def batches(self):
        frames = frames_of(self.paths[0] / "jpg")
        return {"small": batches.small(self.meter, self.worker, chosen(self.paths, "s01", "s04"), self.scratch,
                                       self.rounds),
                "overhead": batches.overhead(self.worker, frames, self.scratch, self.rounds)}

    def jobs(self):
        return {"throughput": jobs.throughput(self.worker, self.program, self.paths, self.scratch, self.rounds),
                "memory": jobs.memory(self.worker, self.paths[0], self.scratch, self.rounds)}

    def startup(self):
        return startup.startup(self.meter, self.worker, chosen(self.paths, "s02")[0], self.scratch, self.rounds)

    def finished(self):
        return finished.finished(self.meter, self.worker, self.paths[0], self.scratch, max(1, self.rounds // 2))

    def scale(self):
        return scale.scale(self.worker, self.scratch)

    def profile(self):
        return {"session": self.paths[0].name,
                "table": profiles.table(self.worker, frames_of(self.paths[0] / "jpg"), self.scratch)}


PARTS = (*KINDS, "sandbox", "decoding", "batches", "jobs", "startup", "finished", "scale", "profile")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", help="directory of sessions")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of compared programs (default: 5)")
    parser.add_argument("--worker", help="the program to measure (default: the release build)")
    parser.add_argument("--base", metavar="PROGRAM", help="compare with this program instead of ffmpeg")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"parts to run (default: all): {', '.join(PARTS)}")
    arguments = parser.parse_args()
    unknown = set(arguments.parts) - set(PARTS)
    if unknown or arguments.rounds < 1:
        parser.error(f"no part {', '.join(sorted(unknown))}" if unknown else "--rounds is at least 1")
    for program in filter(None, (arguments.worker, arguments.base)):
        if not os.access(program, os.X_OK):
            parser.error(f"{program} is no program")
    worker = os.path.abspath(arguments.worker) if arguments.worker else built()
    results = {"date": str(date.today()), "machine": machine(), "load": os.getloadavg()[0], "rounds": arguments.rounds,
               "minutes": {}, "parts": {}}
    scratch = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        bench = Bench(worker, arguments.corpus, arguments.rounds, scratch)
        if arguments.base:
            print(compare.text(bench, os.path.abspath(arguments.base), arguments.parts or compare.PARTS))
            return
        results["instructions"] = {"method": bench.meter.name, "frames": bench.meter.frames}
        for part in arguments.parts or PARTS:
            print(f"== {part}", file=sys.stderr)
            start = time.monotonic()
            results["parts"][part] = bench.measure(part)
            results["minutes"][part] = (time.monotonic() - start) / 60
    finally:
        shutil.rmtree(scratch)
    print(page.text(results))
    if not arguments.parts and not arguments.corpus and pictures.corpus(None):
        page.write(results)


if __name__ == "__main__":
    main()
