"""Measures stitch, HLS, verify and reencode, for a session of an hour, beside stock ffmpeg. For bench.py."""

import shutil
import statistics
import sys

from measure import START, batch, in_turn, run
from pictures import frames_of

SECONDS, BATCHES = 3_600, 4
# Rounds of the cheap commands for each round of the expensive ones.
CHEAP_ROUNDS = 3


def encode(worker, path, scratch):
    """Makes a session of an hour: the frames of this session, once a second, again and again."""
    frames, size = frames_of(path / "jpg"), SECONDS // BATCHES
    hour = [frames[number % len(frames)] for number in range(SECONDS)]
    batches = [batch(scratch / f"hour@{first:04}", hour[first:first + size], START + first * 1_000)
               for first in range(0, SECONDS, size)]
    run([worker, "encode", *batches, "--output", scratch / "output"])
    for folder in batches:
        shutil.rmtree(folder)
    return scratch / "output" / "hour"


def size(files):
    return sum(file.stat().st_size for file in files if file.is_file())


def finished(worker, path, scratch, rounds):
    """Returns CPU seconds, wall-clock seconds, peak memory and bytes of each command and of ffmpeg's counterpart."""
    session = encode(worker, path, scratch)
    film, new = scratch / "film.mp4", scratch / "new"
    run([worker, "stitch", session, "--to", film])

    def measured(*command):
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        return *run(command)[:3], size(new.rglob("*"))

    def ffmpeg(*arguments):
        return measured("ffmpeg", "-v", "error", *arguments)

    joined = ["-f", "concat", "-safe", "0", "-i", session / "session.ffconcat"]
    hls = ["-map", "0:v", "-c", "copy", "-f", "hls", "-hls_time", "5", "-hls_list_size", "0", "-hls_segment_type",
           "fmp4", "-hls_playlist_type", "vod"]
    superfast = ["-map", "0:v", "-c:v", "libx264", "-preset", "superfast"]
    cheap = {
        "stitch": lambda: measured(worker, "stitch", session, "--to", new / "film.mp4"),
        "stitch by ffmpeg": lambda: ffmpeg(*joined, "-map", "0", "-c", "copy", new / "film.mp4"),
        "hls": lambda: measured(worker, "stitch", session, "--to", new / "hls", "--format", "hls"),
        "hls by ffmpeg": lambda: ffmpeg(*joined, *hls, new / "session.m3u8")}
    expensive = {
        "verify": lambda: measured(worker, "verify", session),
        "verify by ffmpeg": lambda: ffmpeg("-i", film, "-map", "0:v", "-f", "null", "-"),
        "reencode": lambda: measured(worker, "reencode", session, "--output", new, "--quality", "small"),
        "reencode by ffmpeg": lambda: ffmpeg("-i", film, *superfast, new / "film.mp4")}
    costs = {}
    for programs, times in ((cheap, CHEAP_ROUNDS * rounds), (expensive, rounds)):
        print(f"{', '.join(programs)} …", file=sys.stderr)
        for name, found in in_turn(times, programs).items():
            cpu, memory, wall, written = zip(*found)
            costs[name] = {"cpu": min(cpu), "wall": min(wall), "memory": statistics.median(memory),
                           "bytes": written[-1]}
    segments = list(session.glob("segment-*.mp4"))
    return {"segments": len(segments), "bytes": size(segments), "rows": costs}
