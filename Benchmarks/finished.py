"""Measures stitch, HLS, verify and reencode, for a session of an hour, beside stock ffmpeg. For bench.py.

Under valgrind the session of the count has a minute (meters.py).
"""

import shutil
import statistics
import sys
from functools import partial

from measure import START, at_once, batch, in_turn, run
from meters import Clock
from pictures import frames_of

SECONDS, BATCHES = 3_600, 4
MINUTE = 60
# Rounds of the cheap commands for each round of the expensive ones.
CHEAP_ROUNDS = 3


def encode(worker, path, scratch, seconds):
    """Makes a session of so many seconds: the frames of this session, one a second, again and again."""
    frames, size = frames_of(path / "jpg"), seconds // BATCHES
    shown = [frames[number % len(frames)] for number in range(seconds)]
    batches = [batch(scratch / f"s{seconds}@{first:04}", shown[first:first + size], START + first * 1_000)
               for first in range(0, seconds, size)]
    run([worker, "encode", *batches, "--output", scratch / "output"])
    for folder in batches:
        shutil.rmtree(folder)
    return scratch / "output" / f"s{seconds}"


def size(files):
    return sum(file.stat().st_size for file in files if file.is_file())


def commands(meter, worker, session):
    """Returns the commands that cost little and those that cost much, each a function that writes to a directory."""
    film = session.with_suffix(".mp4")
    if not film.exists():
        run([worker, "stitch", session, "--to", film])

    def ours(*arguments):
        return meter.run([meter.program(worker), *arguments, *meter.options])

    def ffmpeg(*arguments):
        return meter.run(["ffmpeg", "-v", "error", *arguments])

    joined = ["-f", "concat", "-safe", "0", "-i", session / "session.ffconcat"]
    hls = ["-map", "0:v", "-c", "copy", "-f", "hls", "-hls_time", "5", "-hls_list_size", "0", "-hls_segment_type",
           "fmp4", "-hls_playlist_type", "vod"]
    superfast = ["-map", "0:v", "-c:v", "libx264", "-preset", "superfast"]
    return {
        "stitch": lambda new: ours("stitch", session, "--to", new / "film.mp4"),
        "stitch by ffmpeg": lambda new: ffmpeg(*joined, "-map", "0", "-c", "copy", new / "film.mp4"),
        "hls": lambda new: ours("stitch", session, "--to", new / "hls", "--format", "hls"),
        "hls by ffmpeg": lambda new: ffmpeg(*joined, *hls, new / "session.m3u8")}, {
        "verify": lambda new: ours("verify", session),
        "verify by ffmpeg": lambda new: ffmpeg("-i", film, "-map", "0:v", "-f", "null", "-"),
        "reencode": lambda new: ours("reencode", session, "--output", new, "--quality", "small"),
        "reencode by ffmpeg": lambda new: ffmpeg("-i", film, *superfast, new / "film.mp4")}


def into(new, command):
    """Calls a command with a new directory. Returns its Used."""
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    return command(new)


def finished(meter, worker, path, scratch, rounds):
    """Returns CPU and wall-clock seconds, memory, bytes and instructions of each command and ffmpeg's counterpart."""
    session, new = encode(worker, path, scratch, SECONDS), scratch / "new"

    def measured(command):
        return *into(new, command)[:3], size(new.rglob("*"))

    costs = {}
    cheap, expensive = commands(Clock(), worker, session)
    for programs, times in ((cheap, CHEAP_ROUNDS * rounds), (expensive, rounds)):
        print(f"{', '.join(programs)} …", file=sys.stderr)
        for name, found in in_turn(times, {name: partial(measured, one) for name, one in programs.items()}).items():
            cpu, memory, wall, written = zip(*found)
            costs[name] = {"cpu": min(cpu), "wall": min(wall), "memory": statistics.median(memory),
                           "bytes": written[-1]}
    print("instructions …", file=sys.stderr)
    seconds = MINUTE if meter.frames else SECONDS
    counted = encode(worker, path, scratch, seconds) if meter.frames else session
    programs = {name: one for some in commands(meter, worker, counted) for name, one in some.items()}
    used = at_once([partial(into, scratch / f"new {name}", one) for name, one in programs.items()])
    for name, one in zip(programs, used):
        costs[name]["instructions"] = one.instructions
    segments = list(session.glob("segment-*.mp4"))
    return {"segments": len(segments), "bytes": size(segments), "counted": seconds, "rows": costs}
