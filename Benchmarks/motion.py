"""Measures what vectors of scrolls and delta pictures could save: bytes, SSIM-Y and instructions. Prints a table a session.

    /usr/bin/python3 Benchmarks/motion.py PROGRAM SESSION...

SESSION is a directory of a corpus with jpg/ and perhaps png/. PROGRAM is the worker. motion.c codes with x264 itself, with the
worker's settings and the same bytes, and describes the ways. Instructions are counted by meters.py, of coding alone: those of
the same run without coding are subtracted. Needs libx264-dev. Takes some ten minutes a session with valgrind.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import limit
import measure
import meters
from likeness import luma, segments_of, ssim, truth_of

WIDE = "me=umh:merange"
# A name, more parameters of x264, the way of motion.c, and its value.
ROWS = [
    ("all pictures", "", "all", 0),
    *((f"range of {far} × the scroll", "", "scroll", far) for far in (1, 2)),
    *((f"`merange={far}`", f"{WIDE}={far}", "all", 0) for far in (64, 512)),
    ("`merange=512:mvrange=2048`", f"{WIDE}=512:mvrange=2048", "all", 0),
    ("first pictures", "", "keys", 0),
    *((f"pictures below {share}", "", "rest", share) for share in (0.6, 0.8, 0.95)),
]
STARS = [("CABAC", ""), ("CAVLC, no deblocking", "no-cabac=1:no-deblock=1")]


def build(folder):
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "x264", "libavcodec", "libavutil"], stdout=subprocess.PIPE,
                           text=True, check=True).stdout.split()
    subprocess.run(["cc", "-O2", Path(__file__).with_name("motion.c"), "-o", folder / "motion", *flags], check=True)
    return folder / "motion"


class Session:
    def __init__(self, meter, motion, worker, path, scratch):
        self.meter, self.motion, self.scratch, self.plan = meter, motion, scratch, scratch / "plan"
        measure.run([worker, "encode", path / "jpg", "--session", path.name, "--output", scratch, "--jobs", "1"])
        segments = segments_of(scratch / path.name)
        self.settings, self.size = segments[0]["encoder"], (segments[0]["width"], segments[0]["height"])
        self.plan.write_text(limit.plan(segments, path / "jpg"))
        lines = [line for line in self.plan.read_text().splitlines() if line != "segment"]
        self.pictures = len(lines)
        for line in lines:
            luma(["-i", truth_of(Path(line.split(" ", 1)[1]))], scratch / "truth.y")

    def command(self, more, way, value):
        parameters = f"{self.settings['parameters']}:{more}".rstrip(":")
        return [self.motion, str(self.settings["rateFactor"]), parameters, self.scratch / "out.h264", way, str(value)]

    def run(self, more, way, value):
        with open(self.plan) as plan:
            report = subprocess.run(self.command(more, way, value), stdin=plan, stdout=subprocess.PIPE, text=True, check=True)
        return report.stdout.split()

    def instructions(self, more, way, value):
        return self.meter.run(self.command(more, way, value), self.plan).instructions

    def likeness(self):
        coded = self.scratch / "coded.y"
        coded.unlink(missing_ok=True)
        luma(["-r", "1", "-i", self.scratch / "out.h264"], coded, size=self.size)
        values = ssim(coded, self.scratch / "truth.y", self.size)
        assert len(values) == self.pictures, f"{len(values)} pictures, not {self.pictures}"
        return f"{sum(values) / len(values):.4f}"

    def table(self, name):
        shares = self.run("", "find", 0)[-2:]
        without = {"find": self.instructions("", "find", 0), "decode": self.instructions("", "decode", 0)}
        print(f"\n{name}: {self.pictures} pictures; near-equal in place {shares[0]}, moved {shares[1]}; vectors and shares of all "
              f"pictures cost {(without['find'] - without['decode']) / 1e6:.0f} million instructions\n")
        print("| x264 codes | pictures | bytes | of key frames | SSIM-Y | million instructions |\n|---|--:|--:|--:|--:|--:|")
        for title, more, way, value in ROWS:
            size, keys, pictures = self.run(more, way, value)[:3]
            like = self.likeness() if int(pictures) == self.pictures else ""
            # Vectors and shares cost a delta coder, too; those of a scroll are part of its way.
            spent = self.instructions(more, way, value) - without["find" if way == "rest" else "decode"]
            print(f"| {title} | {pictures} | {size} | {keys} | {like} | {spent / 1e6:.0f} |", flush=True)
        for share in (0.8, 0.95):
            for title, more in STARS:
                size, keys, pictures = map(int, self.run(more, "star", share)[:3])
                print(f"| from {share} on, behind their reference, {title} | {pictures // 2} | {size - keys} | | | |", flush=True)


def main():
    worker, *paths = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        meter, motion = meters.counter(scratch), build(scratch)
        for path in map(Path, paths):
            folder = scratch / path.name
            folder.mkdir()
            Session(meter, motion, Path(worker).resolve(), path, folder).table(path.name)


if __name__ == "__main__":
    main()
