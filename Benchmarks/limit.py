"""The bare loop of limit.c, and its plan for the segments that the worker made."""

import subprocess
from pathlib import Path


def build(folder):
    program = folder / "limit"
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libavcodec", "libavutil"], stdout=subprocess.PIPE,
                           text=True, check=True).stdout.split()
    subprocess.run(["cc", "-O2", Path(__file__).with_name("limit.c"), "-o", program, *flags], check=True)
    return program


def plan(segments, folder):
    """Returns the plan for limit.c: the frames of these segments to decode and encode, each of them once."""
    lines = []
    shown = still = None  # a file and its bytes
    for segment in segments:
        new, start = [], 0
        for frame in segment["frames"]:
            file = folder / frame["source"]
            data = file.read_bytes()
            if shown is None or data != shown[1]:
                shown = (file, data)
            if not new or new[-1][1] is not shown:
                new.append((start, shown))
            start += frame["holdMs"]
        # A segment of one picture that equals the last such segment is reused, not encoded again.
        if len(new) > 1 or still is not new[0][1]:
            lines.append("segment")
            lines += [f"{start * 90} {file}" for start, (file, _) in new]
        still = new[0][1] if len(new) == 1 else still
    return "\n".join(lines) + "\n"
