"""Measures several jobs and several workers on one machine: speed, CPU, memory. For bench.py."""

import os
import statistics
import time
from functools import partial

import limit
from likeness import segments_of
from measure import batch, in_turn, new_spool, ratios, run, together
from pictures import frames_of, made, quality

# The bare loop repeats a session, to reduce the share of its start.
REPEATS = 5
LARGE = (1170, 2532)
MEMORY_FRAMES = 60
MODES = ("require", "off")


def throughput(worker, program, paths, scratch, rounds):
    """Compares one worker with two workers and with two jobs, over a spool of batches of ten frames.

    Compares one bare loop with two, too. Returns ratios of speed, and of CPU for the same work.
    """
    frames = [frame for path in paths for frame in frames_of(path / "jpg")]

    def spool_of_all():
        spool = new_spool(scratch / "throughput")
        # Each frame is used twice, to reduce the share of the start.
        for number in range(0, len(frames) // 10 * 10, 10):
            for copy in ("a", "b"):
                batch(spool / "incoming" / f"s{number:04}{copy}", frames[number:number + 10])
        os.sync()
        return spool

    def timed(commands, script=os.devnull):
        start = time.monotonic()
        used = together(commands, script)
        return time.monotonic() - start, sum(one.cpu for one in used)

    def work(workers, jobs, mode):
        spool = spool_of_all()
        return timed([[worker, "run", "--spool", spool, "--drain", "--jobs", jobs, "--sandbox", mode]] * workers)

    folder = paths[0] / "jpg"
    run([worker, "encode", folder, "--session", "s", "--output", scratch / "plan-of"])
    segments = segments_of(scratch / "plan-of" / "s")
    script = scratch / "plan"
    script.write_text(limit.plan(segments, folder) * REPEATS)
    settings = segments[0]["encoder"]
    loop = [program, settings["preset"], settings["rateFactor"], settings["parameters"], "/dev/null"]

    programs = {(workers, jobs, mode): partial(work, workers, jobs, mode)
                for mode in MODES for workers, jobs in ((1, 1), (2, 1), (1, 2))}
    programs |= {count: partial(timed, [loop] * count, script) for count in (1, 2)}
    found = in_turn(rounds, programs)

    def compared(one, two, times=1):
        wall, cpu = ([[turn[place] for turn in found[name]] for name in (one, two)] for place in (0, 1))
        return {"speed": ratios([times * value for value in wall[0]], wall[1]),
                "cpu": ratios(cpu[1], [times * value for value in cpu[0]])["median"]}

    two = {"workers": (2, 1), "jobs": (1, 2)}
    result = {mode: {name: compared((1, 1, mode), (*counts, mode)) for name, counts in two.items()} for mode in MODES}
    return result | {"loops": compared(1, 2, times=2)}


def memory(worker, path, scratch, rounds):
    """Returns the peak RSS, in MB, of a worker with two jobs, for pictures of a session as they are and large ones."""
    def peak(folder, place):
        frames = frames_of(folder)[:MEMORY_FRAMES]
        batches = [batch(place / f"s{first}", frames[first:first + 15]) for first in range(0, len(frames), 15)]
        command = [worker, "encode", *batches, "--jobs", "2", "--output"]
        return statistics.median(run([*command, place / f"out-{turn}"]).memory for turn in range(rounds))

    scaled = {"suffix": ".jpg", "size": LARGE, "most": MEMORY_FRAMES, "save": {"quality": quality(path)}}
    return {f"of {path.name}": peak(path / "jpg", scratch / "memory"),
            f"of {LARGE[0]}×{LARGE[1]}": peak(made(path / "jpg", scratch / "large", scaled), scratch / "memory-large")}
