"""Measures the cost of a batch beside that of its pictures. For bench.py.

CPU and instructions are of the worker and its decoder processes, start and end included.
"""

import tempfile
from functools import partial
from pathlib import Path

from measure import START, at_once, batch, drain, in_turn, new_spool, ratios
from meters import Clock
from pictures import frames_of
from profiles import stages

SMALL = 5
# Rounds of small batches for each round of the rest.
SMALL_ROUNDS = 3


def whole(path):
    """Returns as many frames of a session as fill batches of five."""
    frames = frames_of(path / "jpg")
    return frames[:len(frames) // SMALL * SMALL]


def drained(meter, worker, frames, size, spool, *options):
    """Runs a worker over batches of so many frames, one a second. Returns its Used."""
    new_spool(spool)
    for first in range(0, len(frames), size):
        batch(spool / "incoming" / f"s@{first:04}", frames[first:first + size], START + first * 1_000)
    used = drain(meter.program(worker), spool, "--jobs", "1", *(options or meter.options), run=meter.run)
    made = len(list((spool / "output" / "s").glob("segment-*.json")))
    assert made == len(frames) // SMALL, f"{made} segments"
    return used


def small(meter, worker, paths, scratch, rounds):
    """Compares batches of five frames with one batch of all frames, in turn, with and without the sandbox.

    There is a frame a second, so that both ways make the same segments.
    """
    def counted(frames, size, mode):
        spool = Path(tempfile.mkdtemp(prefix="small-", dir=scratch))
        return drained(meter, worker, frames, size, spool, "--sandbox", mode).instructions

    result = []
    for path in paths:
        frames = whole(path)
        sizes = (SMALL, len(frames))
        for mode in ("require", "off"):
            used = in_turn(SMALL_ROUNDS * rounds, {
                size: partial(drained, Clock(), worker, frames, size, scratch / "small", "--sandbox", mode)
                for size in sizes})
            few, many = ([one.cpu for one in used[size]] for size in sizes)
            instructions = None
            if mode == "off" or meter.sandboxed:
                counts = at_once([partial(counted, frames, size, mode) for size in sizes])
                instructions = counts[0] / counts[1]
            result.append({"name": path.name, "sandbox": mode, "batches": len(frames) // SMALL, "size": SMALL,
                           "frames": len(frames), "instructions": instructions} | ratios(few, many))
    return result


def overhead(worker, frames, scratch, rounds):
    """Measures CPU ms of a batch of two frames beside decoding and encoding, without the start of the worker: with and
    without the sandbox, on disk and in memory."""
    def spent(mode, place):
        spool = new_spool(place / "overhead")
        idle = drain(worker, spool, "--jobs", "1", "--sandbox", mode).cpu
        starts = [(copy, first) for copy in range(4) for first in range(0, len(frames) - 1, 2)]
        for copy, first in starts:
            batch(spool / "incoming" / f"s{copy}@{first:04}", frames[first:first + 2], START + first * 1_000)
        used = drain(worker, spool, "--jobs", "1", "--profile", "--sandbox", mode)
        found = stages(used)
        return ((used.cpu - idle) * 1_000 - found["decode"][1] - found["encode"][1]) / len(starts)

    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        costs = in_turn(rounds, {(mode, name): partial(spent, mode, place) for mode in ("require", "off")
                                 for name, place in (("disk", scratch), ("memory", Path(memory)))})
    return {mode: {name: min(costs[mode, name]) for name in ("disk", "memory")} for mode in ("require", "off")}
