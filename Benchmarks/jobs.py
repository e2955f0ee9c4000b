"""Measures several jobs and several workers on one machine: speed, CPU, memory. For bench.py; alone it compares ways to run two jobs.

    /usr/bin/python3 Benchmarks/jobs.py PROGRAM SESSION... --way 'batch=chrt -b 0' --way 'first CPU=taskset -c 0'

SESSION is a directory of a corpus with jpg/. PROGRAM is the worker. A way is a name, and the start of the command that runs the
worker: with taskset, chrt, or env and a library that changes its calls. Each way, and the worker as it is, drains a spool with one
job and with two, alone and beside busy processes, in turn. Prints a table. The steady speed is that between the first and the last
tenth of the batches: without the start of the worker, and without its end, when only one job has a batch left. A run is dropped
when the host took more than 3 % of the machine for others (steal). The last column is the share of other programs and the kernel.
"""

import argparse
import contextlib
import json
import os
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import limit
from likeness import segments_of
from measure import batch, in_turn, new_spool, ratios, run, together
from pictures import frames_of, made, quality

# The bare loop repeats a session, to reduce the share of its start.
REPEATS = 5
LARGE = (1170, 2532)
MEMORY_FRAMES = 60
MODES = ("require", "off")
# Never waits, and ends after its parent.
BUSY = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""
USUAL = "as it is"
HEAD = ("way", "busy", "rounds", "two / one", "whole drain", "CPU, two / one", "one / as it is", "two / as it is", "ms a batch, one", "two",
        "CPU ms, two", "foreign, two")
# Maximum share of the machine that the host takes for others while a run counts.
STEAL = 0.03


def spool_of(paths, place, copies):
    """Returns a spool of batches of ten frames of these sessions. Each frame is used once for each copy."""
    frames = [frame for path in paths for frame in frames_of(path / "jpg")]
    spool = new_spool(place)
    for number in range(0, len(frames) // 10 * 10, 10):
        for copy in range(copies):
            batch(spool / "incoming" / f"s{number:04}-{copy}", frames[number:number + 10])
    os.sync()
    return spool


def throughput(worker, program, paths, scratch, rounds):
    """Compares one worker with two workers and with two jobs, over a spool of batches of ten frames.

    Compares one bare loop with two, too. Returns ratios of speed, and of CPU for the same work.
    """
    def timed(commands, script=os.devnull):
        start = time.monotonic()
        used = together(commands, script)
        return time.monotonic() - start, sum(one.cpu for one in used)

    def work(workers, jobs, mode):
        # Each frame is used twice, to reduce the share of the start.
        spool = spool_of(paths, scratch / "throughput", 2)
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


@contextlib.contextmanager
def busy(count):
    """Runs processes that never wait, each in a session of its own, as another service would be."""
    running = [subprocess.Popen([sys.executable, "-I", "-S", "-c", BUSY], start_new_session=True) for _ in range(count)]
    # Until Python has started.
    time.sleep(0.3)
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def cpu_times():
    """Returns CPU seconds so far: all of the machine, what its host took for others, what programs used, and what our children used."""
    values = [int(value) / os.sysconf("SC_CLK_TCK") for value in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    # The fourth and fifth are idle time, the eighth is steal.
    return sum(values), values[7], sum(values[:3]) + sum(values[5:7]), children.ru_utime + children.ru_stime


def steady(output):
    """Returns the seconds a batch between the first and the last tenth of the batches. Each batch is a session here."""
    manifests = [list(session.glob("segment-*.json")) for session in output.iterdir()]
    ends = sorted(max(file.stat().st_mtime for file in files) for files in manifests if files)
    ends = ends[len(ends) // 10:len(ends) - len(ends) // 10]
    return (ends[-1] - ends[0]) / (len(ends) - 1)


def drained(command, paths, scratch, copies, jobs, others):
    """Drains a spool with a way's command. Returns seconds a batch, steady and as a whole, CPU seconds a batch.

    And the shares of the machine that its host took (steal), and that other programs and the kernel's threads used.
    """
    spool = spool_of(paths, scratch / "jobs", copies)
    count = len(os.listdir(spool / "incoming"))
    before = cpu_times()
    with busy(others):
        used = run([*command, "run", "--spool", spool, "--drain", "--jobs", jobs, "--sandbox", "require"])
    total, stolen, busy_time, ours = (after - earlier for after, earlier in zip(cpu_times(), before))
    return {"steady": steady(spool / "output"), "whole": used.wall / count, "cpu": used.cpu / count, "steal": stolen / total,
            "foreign": (busy_time - ours) / total}


def row(rounds, way, others):
    """Returns the cells of a way's row, from the rounds of which no run of the way, or of the worker as it is, is dropped."""
    names = {(name, jobs): f"{name}, {jobs}, {others}" for name in (way, USUAL) for jobs in (1, 2)}
    kept = [one for one in rounds if all(name in one and one[name]["steal"] <= STEAL for name in names.values())]
    if not kept:
        return [way, others, 0]

    def each(above, below, what):
        return [one[names[above]][what] / one[names[below]][what] for one in kept]

    def median(name, what):
        return statistics.median(one[names[name]][what] for one in kept)

    one, two = (way, 1), (way, 2)
    speed = each(one, two, "steady")
    compared = [each(one, two, "whole"), each(two, one, "cpu"), each((USUAL, 1), one, "steady"), each((USUAL, 2), two, "steady")]
    ms = [f"{1000 * median(name, what):.0f}" for name, what in ((one, "steady"), (two, "steady"), (two, "cpu"))]
    return [way, others, len(kept), f"{statistics.median(speed):.2f}, {min(speed):.2f}–{max(speed):.2f}",
            *(f"{statistics.median(found):.2f}" for found in compared), *ms, f"{median(two, 'foreign'):.1%}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="the worker")
    parser.add_argument("sessions", nargs="+", type=Path, metavar="SESSION")
    parser.add_argument("--way", action="append", default=[], metavar="NAME=COMMAND", help="another way to start the worker")
    parser.add_argument("--rounds", type=int, default=3, help="default: 3")
    parser.add_argument("--copies", type=int, default=2, help="the number of times that each frame is used (default: 2)")
    parser.add_argument("--busy", type=int, nargs="*", default=[0, 2], help="numbers of busy processes (default: 0 2)")
    parser.add_argument("--log", type=Path, help="keep each round in this file, a line each; the table counts its earlier rounds, too")
    arguments = parser.parse_args()
    ways = {USUAL: []} | {name: shlex.split(start) for name, start in (way.split("=", 1) for way in arguments.way)}
    scratch = Path(tempfile.mkdtemp(prefix="jobs-"))
    try:
        programs = {f"{way}, {jobs}, {others}": partial(drained, [*start, os.path.abspath(arguments.program)], arguments.sessions,
                                                         scratch, arguments.copies, jobs, others)
                    for others in arguments.busy for way, start in ways.items() for jobs in (1, 2)}
        found = in_turn(arguments.rounds, programs)
    finally:
        shutil.rmtree(scratch)
    rounds = [{name: turns[turn] for name, turns in found.items()} for turn in range(arguments.rounds)]
    if arguments.log:
        with open(arguments.log, "a") as log:
            log.writelines(json.dumps(one) + "\n" for one in rounds)
        rounds = [json.loads(line) for line in arguments.log.read_text().splitlines()]
    ways = dict.fromkeys(name.rsplit(", ", 2)[0] for one in rounds for name in one)
    counts = sorted({int(name.rsplit(", ", 2)[2]) for one in rounds for name in one})
    for cells in (HEAD, ["---"] * len(HEAD), *(row(rounds, way, others) for others in counts for way in ways)):
        print("|", " | ".join(map(str, cells)), "|")


if __name__ == "__main__":
    main()
