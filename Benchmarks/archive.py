"""Measures how many bytes an archive would take: one long GOP a session, at the likeness of today's segments. Prints tables.

    /usr/bin/python3 Benchmarks/archive.py PROGRAM SESSION... [--film] [--av1 "chroot DEBIAN_13 ffmpeg"] [--only REGEX]

SESSION is a directory of a corpus with jpg/ and perhaps png/. Each distinct picture is coded once, from the captured files,
or with --film from the pictures of the published film, as `reencode` would. Rate factors are searched until two of them
enclose the mean SSIM-Y of the session's frames, and bytes are interpolated between them. Needs an ffmpeg with libsvtav1 2 or
later for AV1; it reads pipes only, so it may live in another root. --only picks ways by name.
"""
import argparse
import math
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

import measure
from likeness import luma, our_places, segments_of, similarity, ssim, truth_of

# A way to code a session. `first` is the first rate factor to try, `step` the distance to the next one.
Way = namedtuple("Way", "name codec form first step options")
MOST = {"x264": 51, "svtav1": 63}
WIDE = "merange=512:mvrange=2048"


# The worker's own settings, in one GOP.
OWN = "ref=1:weightp=0:qcomp=1:rc-lookahead=0:sync-lookahead=0:mbtree=0:scenecut=0:keyint=infinite:bframes=0:8x8dct=0:subme=0"
WAYS = [
    Way("the worker's settings", "x264", "h264", 28.6, 3, ["-preset", "superfast", "-x264-params", OWN]),
    Way("x264 veryslow", "x264", "h264", 27, 3, ["-preset", "veryslow", "-x264-params", "keyint=infinite"]),
    Way(f"x264 veryslow, {WIDE}", "x264", "h264", 27, 3, ["-preset", "veryslow", "-x264-params", f"keyint=infinite:{WIDE}"]),
    Way("SVT-AV1 preset 4", "svtav1", "ivf", 52, 7, ["-preset", "4", "-svtav1-params", "keyint=-1:lp=1:scm=2"]),
]


def spent():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def output(command, **options):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, **options).stdout


def sample_bytes(video):
    """Returns the bytes of a video's coded pictures, without those of its container."""
    sizes = output(["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "packet=size", "-of", "csv=p=0", video])
    return sum(int(line.strip(b",")) for line in sizes.split())


class Session:
    """A session's published segments, its distinct pictures, and how often each of them was captured."""

    def __init__(self, worker, path, scratch):
        self.worker, self.path, self.scratch = worker, path, scratch
        self.frames = {frame.name: frame for frame in sorted((path / "jpg").glob("*.jpg"))}
        self.published = self.encode("balanced")
        self.segments = segments_of(self.published)
        self.size = (self.segments[0]["width"], self.segments[0]["height"])
        self.shown = [frame["source"] for segment in self.segments for frame in segment["frames"]]
        self.pictures, self.repeats, last = [], [], None
        for name in self.shown:
            data = self.frames[name].read_bytes()
            if data != last:
                self.pictures.append(name)
                self.repeats.append(0)
            self.repeats[-1] += 1
            last = data
        self.truth = scratch / "truth.y"
        for name in self.pictures:
            luma(["-i", truth_of(self.frames[name])], self.truth)

    def encode(self, quality):
        target = self.scratch / quality
        measure.run([self.worker, "encode", self.path / "jpg", "--session", self.path.name, "--output", target,
                     "--quality", quality, "--jobs", "1"])
        return target / self.path.name

    def reencode(self, quality):
        target = self.scratch / f"again-{quality}"
        measure.run([self.worker, "reencode", self.published, "--output", target, "--quality", quality, "--jobs", "1"])
        return target / self.path.name

    def likeness(self, published):
        """Returns the bytes of samples and of files, and the mean SSIM-Y of all frames at their instants."""
        segments = segments_of(published)
        videos = [published / segment["file"] for segment in segments]
        places = [(video, our_places(segment, video)) for segment, video in zip(segments, videos)]
        folder = self.scratch / f"luma-{published.parent.name}"
        folder.mkdir()
        values = similarity(self.segments, places, self.frames, folder)
        shutil.rmtree(folder)
        return sum(map(sample_bytes, videos)), sum(video.stat().st_size for video in videos), statistics.mean(values)

    def raw(self, film):
        """Writes the distinct pictures as YCbCr 4:2:0 of even size, as captured, or as in the published film."""
        target = self.scratch / "source.yuv"
        width, height = self.size
        even = f"{width + width % 2}:{height + height % 2}"
        pad = ["-vf", f"pad={even},fillborders=0:{width % 2}:0:{height % 2}:smear" if width % 2 or height % 2 else "null"]
        places = {}
        for segment in self.segments if film else []:
            video = self.published / segment["file"]
            for frame, place in zip(segment["frames"], our_places(segment, video)):
                places.setdefault(frame["source"], (video, place))
        with open(target, "wb") as file:
            for name in self.pictures:
                source = ["-i", self.frames[name]]
                if film:
                    video, place = places[name]
                    pad, source = ["-vf", f"select=eq(n\\,{place})"], ["-i", video]
                file.write(output(["ffmpeg", "-v", "error", *source, *pad, "-frames:v", "1", "-pix_fmt", "yuvj420p", "-f",
                                   "rawvideo", "-"]))
        return target

    def code(self, way, ffmpeg, factor, source):
        """Returns the bytes of samples, the mean SSIM-Y of all frames, and CPU seconds."""
        coded = self.scratch / f"coded.{way.form}"
        width, height = (side + side % 2 for side in self.size)
        raw = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", f"{width}x{height}", "-r", "25", "-i", "-"]
        before = spent()
        with open(source, "rb") as pictures, open(coded, "wb") as file:
            subprocess.run([*ffmpeg, "-v", "error", *raw, "-c:v", f"lib{way.codec}", *way.options, "-threads", "1", "-crf",
                            str(factor), "-f", way.form, "-"], stdin=pictures, stdout=file, stderr=subprocess.DEVNULL, check=True)
        used = spent() - before
        plane = self.scratch / "coded.y"
        with open(plane, "wb") as file:
            crop = f"extractplanes=y,crop={self.size[0]}:{self.size[1]}:0:0"
            subprocess.run(["ffmpeg", "-v", "error", "-i", coded, "-vf", crop, "-fps_mode", "passthrough", "-f", "rawvideo", "-"],
                           stdout=file, check=True)
        values = ssim(plane, self.truth, self.size)
        assert len(values) == len(self.pictures), f"{way.name}: {len(values)} pictures, not {len(self.pictures)}"
        mean = sum(value * times for value, times in zip(values, self.repeats)) / sum(self.repeats)
        return sample_bytes(coded), mean, used


class Ladder:
    """The rate factors of a way that were tried, to find the bytes of any likeness."""

    def __init__(self, session, way, ffmpeg, source):
        self.way, self.rungs = way, {}
        self.code = lambda factor: session.code(way, ffmpeg, factor, source)

    def rung(self, factor):
        if factor not in self.rungs:
            self.rungs[factor] = self.code(factor)
            print(f"  {self.way.name}, {factor}: {self.rungs[factor]}", file=sys.stderr, flush=True)
        return self.rungs[factor]

    def at(self, likeness):
        """Returns bytes at this mean SSIM-Y, CPU seconds, and the rate factors around it; None where none reaches it.

        One rate factor alone is the largest: its SSIM-Y is higher still.
        """
        factor, step = self.way.first, self.way.step
        up = self.rung(factor)[1] >= likeness
        while True:
            other = min(factor + step, MOST[self.way.codec]) if up else factor - step
            if other == factor:
                return self.rung(factor)[0], self.rung(factor)[2], (factor,)
            if (self.rung(other)[1] >= likeness) != up:
                break
            if not up and self.rung(other)[1] < self.rung(factor)[1]:
                return None
            factor = other
        fine, coarse = sorted((factor, other))
        (most, like, cpu), (least, unlike, _) = self.rung(fine), self.rung(coarse)
        share = (likeness - unlike) / (like - unlike)
        return math.exp(math.log(least) + share * math.log(most / least)), cpu, (fine, coarse)


def row(cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("sessions", type=Path, nargs="+")
    parser.add_argument("--film", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--quality", nargs="+", default=["balanced", "small"])
    parser.add_argument("--av1", default="")
    given = parser.parse_args()
    ways = [way for way in WAYS if re.search(given.only, way.name) and (way.codec == "x264" or given.av1)]
    for path in given.sessions:
        with tempfile.TemporaryDirectory() as scratch:
            session = Session(given.program.resolve(), path, Path(scratch))
            print(f"\n{path.name}: {len(session.frames)} frames, {len(session.pictures)} distinct pictures\n")
            again, name = (session.reencode, "reencode") if given.film else (session.encode, "encode")
            targets = {f"{name} {quality}": session.likeness(again(quality)) for quality in given.quality}
            row(["way", *(f"{name}: samples {sizes[0]}, files {sizes[1]}, SSIM-Y {sizes[2]:.5f}"
                          for name, sizes in targets.items())])
            source = session.raw(given.film)
            for way in ways:
                ladder = Ladder(session, way, given.av1.split() if way.codec == "svtav1" else ["ffmpeg"], source)
                cells = []
                for samples, _, likeness in targets.values():
                    found = ladder.at(likeness)
                    cells.append(f"{found[0]:.0f} = {found[0] / samples:.3f} ({found[1]:.0f} s, {found[2]})" if found else "–")
                row([way.name, *cells])


if __name__ == "__main__":
    main()
