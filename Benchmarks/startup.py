"""Measures `encode` with one batch of five idle frames, and a bare start, beside ffmpeg. For bench.py."""

import statistics

from measure import START, batch, in_turn
from meters import Clock
from pictures import frames_of
from recipes import recipe
from sessions import encode

# Starts for each round of the rest.
STARTS = 5


def idle_frames(path, scratch):
    """Returns a directory of five frames: the first one of a session, again and again."""
    return batch(scratch / "idle" / "jpg", frames_of(path / "jpg")[:1] * 5, START)


def ours(meter, worker, idle):
    return {"encode": lambda: encode(meter, worker, idle, idle.parent / "out"),
            "version": lambda: meter.run([meter.program(worker), "--version"])}


def startup(meter, worker, path, scratch, rounds):
    """Returns the least and the median CPU milliseconds of each command, and its instructions."""
    idle = idle_frames(path, scratch)

    def programs(meter):
        return ours(meter, worker, idle) | {
            "encode by ffmpeg": lambda: recipe(frames_of(idle), START + 5_000, idle.parent, run=meter.run)[0],
            "version of ffmpeg": lambda: meter.run(["ffmpeg", "-version"])}

    spent = in_turn(STARTS * rounds, programs(Clock()))
    counts = {name: call().instructions for name, call in programs(meter).items()}
    costs = {name: [used.cpu * 1_000 for used in all] for name, all in spent.items()}
    return {name: {"least": min(values), "median": statistics.median(values), "instructions": counts[name]}
            for name, values in costs.items()}
