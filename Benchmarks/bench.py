#!/usr/bin/python3
"""Compares the worker with stock ffmpeg, over the same frames, in one run.

    make bench                     the sessions of ../shared/corpus, or of fixtures/ if that directory is missing
    make bench CORPUS=DIR          DIR/<session>/jpg/<unix ms>.jpg; lossless originals of the same names in png/
    make bench PARTS="png jobs"    some parts
    make bench ROUNDS=1            fewer rounds: sooner, and less exact

The parts:
    jpeg, png, webp, large   each session beside the ffmpeg recipe and the bare loop (sessions.py, pictures.py)
    sandbox                  the same sessions with and without the sandbox (sessions.py)
    decoding                 decoding and converting a picture (profiles.py)
    batches                  small batches beside a large one; a batch beside its pictures (batches.py)
    jobs                     two jobs and two workers beside one; memory (jobs.py)
    startup                  the start of the program (startup.py)
    finished                 stitch, HLS, verify and reencode, for an hour (finished.py)
    scale                    a long queue, a long session (scale.py)
    profile                  the worker's own profile of a session

CPU is user + system time of a program and of its decoder processes. Compared programs run in turn. A run of all parts
over the usual sessions writes Benchmarks/results.json, and from it the page, the charts and the figures that other
pages quote (page.py). All other runs only print.
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
import finished
import jobs
import limit
import page
import pictures
import profiles
import scale
import sessions
import startup
from measure import built, machine
from pictures import Session, chosen, frames_of


class Bench:
    """The parts, each a method that returns numbers for page.py."""

    def __init__(self, worker, corpus, rounds, scratch):
        self.worker, self.rounds, self.scratch = worker, rounds, scratch
        self.program = limit.build(scratch)
        self.paths = pictures.sessions(pictures.corpus(corpus), scratch)
        self.made = scratch / "made"

    def compare(self, found):
        return sessions.compare(self.worker, self.program, found, self.scratch, self.rounds)

    def captured(self):
        return [Session(path.name, "JPEG", path / "jpg") for path in self.paths]

    def jpeg(self):
        return self.compare(self.captured())

    def png(self):
        return self.compare(pictures.png(self.paths, self.made))

    def webp(self):
        return self.compare(pictures.webp(self.paths, self.made))

    def large(self):
        return self.compare(pictures.large(self.paths, self.made))

    def sandbox(self):
        return sessions.sandbox(self.worker, self.paths, self.scratch, self.rounds)

    def decoding(self):
        makers = (pictures.png, pictures.webp, pictures.large)
        made = [session for make in makers for session in make(self.paths, self.made)]
        return profiles.decoding(self.worker, self.captured()[:1] + made, self.scratch, self.rounds)

    def batches(self):
        frames = frames_of(self.paths[0] / "jpg")
        return {"small": batches.small(self.worker, chosen(self.paths, "s01", "s04"), self.scratch, self.rounds),
                "overhead": batches.overhead(self.worker, frames, self.scratch, self.rounds)}

    def jobs(self):
        return {"throughput": jobs.throughput(self.worker, self.program, self.paths, self.scratch, self.rounds),
                "memory": jobs.memory(self.worker, self.paths[0], self.scratch, self.rounds)}

    def startup(self):
        return startup.startup(self.worker, chosen(self.paths, "s02")[0], self.scratch, self.rounds)

    def finished(self):
        return finished.finished(self.worker, self.paths[0], self.scratch, max(1, self.rounds // 2))

    def scale(self):
        return scale.scale(self.worker, self.scratch)

    def profile(self):
        return {"session": self.paths[0].name,
                "table": profiles.table(self.worker, frames_of(self.paths[0] / "jpg"), self.scratch)}


PARTS = ("jpeg", "png", "webp", "large", "sandbox", "decoding", "batches", "jobs", "startup", "finished", "scale",
         "profile")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", help="directory of sessions")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of compared programs (default: 5)")
    parser.add_argument("--worker", help="the program to measure (default: the release build)")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"parts to run (default: all): {', '.join(PARTS)}")
    arguments = parser.parse_args()
    unknown = set(arguments.parts) - set(PARTS)
    if unknown or arguments.rounds < 1:
        parser.error(f"no part {', '.join(sorted(unknown))}" if unknown else "--rounds is at least 1")
    worker = os.path.abspath(arguments.worker) if arguments.worker else built()
    results = {"date": str(date.today()), "machine": machine(), "load": os.getloadavg()[0], "rounds": arguments.rounds,
               "minutes": {}, "parts": {}}
    scratch = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        bench = Bench(worker, arguments.corpus, arguments.rounds, scratch)
        for part in arguments.parts or PARTS:
            print(f"== {part}", file=sys.stderr)
            start = time.monotonic()
            results["parts"][part] = getattr(bench, part)()
            results["minutes"][part] = (time.monotonic() - start) / 60
    finally:
        shutil.rmtree(scratch)
    print(page.text(results))
    if not arguments.parts and not arguments.corpus:
        page.write(results)


if __name__ == "__main__":
    main()
