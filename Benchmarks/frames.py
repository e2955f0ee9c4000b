#!/usr/bin/python3
"""Measures the cost of one picture of a day-long session: `pictures --at`, and `frame.jpg` of `serve`.

    /usr/bin/python3 Benchmarks/frames.py .build/release/encoder-worker [--frames DIR] [--instants 100]

The session has 17 280 segments: links to those of four minutes. Its frames are a scrolling text of 750×1334 pixels, or those of
DIR, named `<unix ms>.jpg`. CPU is user + system time, with that of all decoder processes.
"""

import argparse
import hashlib
import json
import os
import random
import resource
import statistics
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

START, SEGMENTS = 1_767_859_512_340, 17_280
WORDS = "the quick brown fox jumps over a lazy dog while segments of five seconds are encoded from screenshots of phones".split()


def draw(folder):
    from PIL import Image, ImageDraw, ImageFont
    chance = random.Random(3)
    lines = [" ".join(chance.choice(WORDS) for _ in range(9)) for _ in range(400)]
    font = ImageFont.truetype("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", 24)
    folder.mkdir()
    for number in range(240):
        image = Image.new("RGB", (750, 1334), (250, 250, 248))
        page = ImageDraw.Draw(image)
        for index, line in enumerate(lines):
            top = 140 + index * 34 - number * 37 % 2_040
            if 120 < top < 1_334:
                page.text((20, top), line, font=font, fill=(30, 30, 30))
                if index % 7 == 0:
                    page.rectangle((600, top, 730, top + 100), fill=tuple(chance.randrange(256) for _ in range(3)))
        page.rectangle((0, 0, 750, 120), fill=(40, 90, 180))
        page.text((30, 50), f"frame {number}", font=font, fill="white")
        image.save(folder / f"{START + number * 1_000}.jpg", quality=85)


def make_day(binary, frames, output):
    """Encodes a session, and makes one of a day with its segments, under other times."""
    subprocess.run([binary, "encode", frames, "--session", "base", "--output", output], check=True,
                   stdout=subprocess.DEVNULL)
    day = output / "day"
    day.mkdir()
    manifests = [json.loads(path.read_text()) for path in sorted((output / "base").glob("segment-*.json"))]
    whole = [manifest for manifest in manifests if manifest["durationMs"] == 5_000]

    def text(manifest):
        return json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    for number in range(SEGMENTS):
        original = whole[number % len(whole)]
        start = START + number * 5_000
        shift = start - original["startMs"]
        name = f"segment-{start:013}"
        manifest = original | {
            "session": "day", "startMs": start, "endMs": start + 5_000, "file": f"{name}.mp4", "part": 1, "parts": 1,
            "batchDigest": f"{number:064x}", "gapAfterMs": 0, "final": False,
            "frames": [frame | {"timeMs": frame["timeMs"] + shift} for frame in original["frames"]]}
        del manifest["manifestSha256"]
        manifest["manifestSha256"] = hashlib.sha256(text(manifest).encode()).hexdigest()
        (day / f"{name}.json").write_text(text(manifest) + "\n")
        os.link(output / "base" / original["file"], day / manifest["file"])
    return day


def by_process(binary, day, instants, target):
    spent = []
    for instant in instants:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([binary, "pictures", day, "--at", str(instant), "--to", target], check=True,
                       stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(1_000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return spent


def family(process):
    """Returns a process, its children and their children: the server, the fork server and the decoders."""
    found = [process]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found


def cpu_ms(process):
    # The CPU clock of a process, see clock_getcpuclockid(3).
    try:
        return time.clock_gettime(~process << 3 | 2) * 1_000
    except OSError:
        return 0


def by_request(binary, output, instants, kind):
    server = subprocess.Popen([binary, "serve", output, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip()
        urllib.request.urlopen(f"{address}healthz").read()
        spent, known = [], {process: cpu_ms(process) for process in family(server.pid)}
        for instant in instants:
            urllib.request.urlopen(f"{address}sessions/day/frame.{kind}?t={instant}").read()
            # The thread of the connection ends a moment after the response.
            time.sleep(0.02)
            now = {process: cpu_ms(process) for process in family(server.pid)}
            spent.append(sum(cpu - known.get(process, 0) for process, cpu in now.items()))
            known = now
        return spent
    finally:
        server.terminate()
        server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--frames", type=Path)
    parser.add_argument("--instants", type=int, default=100)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="frames-") as place:
        place = Path(place)
        if not arguments.frames:
            draw(place / "frames")
        day = make_day(arguments.binary, arguments.frames or place / "frames", place / "output")
        chance = random.Random(1)
        instants = [START + chance.randrange(SEGMENTS * 5_000) for _ in range(arguments.instants)]
        steps = [START + number * 1_000 for number in range(arguments.instants)]
        print(f"| CPU ms of a picture, {arguments.instants} of a session of {SEGMENTS} segments | median | worst |\n|---|--:|--:|")
        for name, spent in [
                ("`pictures --at T --to FILE.jpg`, random instants", by_process(arguments.binary, day, instants, place / "a.jpg")),
                ("`pictures --at T --to FILE.png`", by_process(arguments.binary, day, instants, place / "a.png")),
                ("`serve`, `frame.jpg`, random instants", by_request(arguments.binary, place / "output", instants, "jpg")),
                ("`serve`, `frame.jpg`, one capture after another", by_request(arguments.binary, place / "output", steps, "jpg")),
                ("`serve`, `frame.png`, random instants", by_request(arguments.binary, place / "output", instants, "png"))]:
            print(f"| {name} | {statistics.median(spent):.1f} | {max(spent):.1f} |")


if __name__ == "__main__":
    main()
