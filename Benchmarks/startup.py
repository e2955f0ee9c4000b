"""Measures the CPU of `encode` with one batch of five idle frames, and of a bare start, beside ffmpeg. For bench.py."""

import shutil
import statistics

from measure import START, batch, in_turn, run
from pictures import frames_of
from recipes import recipe

# Starts for each round of the rest.
STARTS = 5


def startup(worker, path, scratch, rounds):
    """Returns the least and the median CPU milliseconds of each command. The five frames are one of this session's."""
    idle = batch(scratch / "idle" / "jpg", frames_of(path / "jpg")[:1] * 5, START)
    frames, output = frames_of(idle), scratch / "out"

    def encode():
        shutil.rmtree(output, ignore_errors=True)
        return run([worker, "encode", idle, "--session", "s", "--output", output, "--jobs", "1"])

    spent = in_turn(STARTS * rounds, {
        "encode": encode,
        "encode by ffmpeg": lambda: recipe(frames, START + 5_000, idle.parent)[0],
        "version": lambda: run([worker, "--version"]),
        "version of ffmpeg": lambda: run(["ffmpeg", "-version"])})
    costs = {name: [used.cpu * 1_000 for used in all] for name, all in spent.items()}
    return {name: {"least": min(values), "median": statistics.median(values)} for name, values in costs.items()}
