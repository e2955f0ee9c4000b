"""Reads the profile that the worker prints with --profile: the CPU of each stage. For bench.py.

Decoding stands beside stock ffmpeg, which decodes and converts the same pictures with one thread. Its start is not
counted: the CPU of one picture is subtracted.
"""

import hashlib
import re

from measure import START, batch, drain, new_spool, run
from pictures import frames_of


def stages(used):
    """Returns how often each stage ran, and its CPU milliseconds in all."""
    rows = re.findall(r"^(\w+) +(?:batch|frame|segment) +(\d+) +([\d.]+) ", used.errors, re.MULTILINE)
    return {stage: (int(times), float(cpu)) for stage, times, cpu in rows}


def table(worker, frames, scratch):
    """Returns the profile's table for a spool of batches of ten frames."""
    spool = new_spool(scratch / "profile")
    for number in range(0, len(frames) // 10 * 10, 10):
        batch(spool / "incoming" / f"s@{number:04}", frames[number:number + 10], START + number * 1_000)
    said = drain(worker, spool, "--jobs", "1", "--profile").errors.splitlines()
    return "\n".join(said[next(number for number, line in enumerate(said) if line.startswith("stage")):])


def different(frames):
    """Returns the frames that do not equal the one before: the worker decodes no other ones."""
    digests = [hashlib.sha256(frame.read_bytes()).digest() for frame in frames]
    return [frame for frame, digest, before in zip(frames, digests, [None, *digests]) if digest != before]


def by_ffmpeg(frames, scratch):
    """Returns CPU milliseconds of decoding and converting a picture with ffmpeg."""
    def spent(files):
        listed = scratch / "list.txt"
        listed.write_text("".join(f"file '{file}'\n" for file in files))
        one = ["-threads", "1", "-filter_threads", "1"]
        return run(["ffmpeg", "-v", "error", *one, "-f", "concat", "-safe", "0", "-i", listed, "-vf", "format=yuv420p",
                    "-fps_mode", "passthrough", "-f", "null", "-"]).cpu

    frames = different(frames)
    return (spent(frames) - spent(frames[:1])) * 1_000 / (len(frames) - 1)


def decoding(worker, sessions, scratch, rounds):
    """Measures CPU milliseconds of decoding and converting a picture, for each of these sessions."""
    result = []
    for session in sessions:
        frames = frames_of(session.folder)
        ours, theirs = [], []
        for _ in range(rounds):
            spool = new_spool(scratch / "decoding")
            batch(spool / "incoming" / "s", frames)
            found = stages(drain(worker, spool, "--jobs", "1", "--profile"))
            ours.append([cpu / times for times, cpu in (found["decode"], found["convert"])])
            theirs.append(by_ffmpeg(frames, scratch))
        decode, convert = min(ours, key=sum)
        result.append({"name": session.name, "kind": session.kind, "decode": decode, "convert": convert,
                       "ffmpeg": min(theirs)})
    return result
