"""Measures x264's settings over real sessions: CPU and bytes, and the quality of the pictures.

    make sweep                     the sessions s01, s04 and s07 of ../shared/corpus
    make sweep CORPUS=DIR          the same of DIR: DIR/<session>/jpg/<unix ms>.jpg; lossless originals in png/

Each row changes one setting of the base, after the worker's own parameters (x264 uses the last value). limit.c encodes
with each setting in turn, ROUNDS times, while nothing else runs. CPU is the minimum of the rounds, of encoding alone,
per captured frame; bytes likewise. Then, on all cores, two qualities are measured: SSIM of luma for each coded picture
(a repeated frame is coded once), and the text that tesseract reads in READ pictures of a session, for the ladders and
the best settings. The reference is the lossless original, or in s07, which has none, the captured file. Takes some 12
minutes on two cores. Writes Benchmarks/SWEEP.md and Benchmarks/sweep.svg.
"""

import difflib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict, namedtuple
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import numpy
from matplotlib import colors, pyplot, ticker

import drawing
import limit
import measure
import pictures
from likeness import luma, recipe_places, segments_of, similarity, ssim, truth_of
from recipes import recipe_segments

SESSIONS = ("s01", "s04", "s07")
READ_SESSIONS = ("s01", "s04")
ROUNDS = 3
READ = 5
OWN = "8x8dct=0:subme=0"

Setting = namedtuple("Setting", "name preset crf parameters")


def plain(preset, crf=28.6):
    return Setting(f"{preset}, CRF {crf}", preset, crf, "")


def changed(more):
    return Setting(f"`{more}`", "superfast", BASE.crf, f"{OWN}:{more}")


LADDER = [Setting(f"base, CRF {crf}", "superfast", crf, OWN) for crf in (20, 22, 24, 26, 27.5, 28.6, 30, 32, 35, 38)]
BASE = LADDER[5]
PLAIN_LADDER = [plain("superfast", crf) for crf in (22, 26, 30, 34)]
PRESETS = [plain(preset) for preset in ("ultrafast", "superfast", "veryfast", "faster", "medium")]
AXES = {
    "Rate factor": LADDER,
    "Superfast as it is": PLAIN_LADDER,
    "Preset as it is": PRESETS,
    "8×8 transform": [changed("8x8dct=1")],
    "Sub-pixel search": [changed(f"subme={effort}") for effort in (1, 2, 4)],
    "Adaptive quantisation": [changed(f"aq-mode={mode}") for mode in (0, 2, 3)]
    + [changed(f"aq-strength={strength}") for strength in (0.8, 1.2)],
    "Partitions": [changed(f"partitions={kinds}") for kinds in ("none", "i4x4", "all")],
    "Deblocking": [changed("no-deblock=1"), changed("deblock=-2,-2")],
    "Entropy coding": [changed("no-cabac=1")],
    "Constant quantiser": [changed("qp=34")],
    "Motion search": [changed("me=hex"), changed("merange=8")],
    "Trellis": [changed("trellis=1")],
    "Colour": [changed("chroma-qp-offset=2")],
    "Cheap ones together": [
        changed("no-deblock=1:partitions=none"),
        changed("no-cabac=1:no-deblock=1"),
        changed("no-cabac=1:no-deblock=1:partitions=none"),
        Setting("ultrafast, `aq-mode=1:cabac=1`", "ultrafast", BASE.crf, "aq-mode=1:cabac=1"),
    ],
}
SETTINGS = [setting for rows in AXES.values() for setting in rows]
JPEG, RECIPE = "the captured JPEG", "recipe a segment"
# The labelled points of the plot: the label's offset from its point, and the side on which its text ends.
MARKS = [
    (LADDER[0], "CRF 20", (6, -3), "left"), (BASE, "base", (-6, 1), "right"),
    (LADDER[-1], "CRF 38", (6, -3), "left"), (PLAIN_LADDER[-1], "superfast as it is, CRF 34", (6, -3), "left"),
    (PRESETS[0], "ultrafast as it is", (0, -10), "center"), (RECIPE, "recipe", (0, 5), "center"),
    (JPEG, "JPEG", (0, -10), "center"),
]


class Session:
    """A session's inputs, which are the same for every setting, and the measurements of a setting."""

    def __init__(self, worker, path, scratch):
        scratch.mkdir()
        self.name, self.scratch, self.truth, self.plan = path.name, scratch, scratch / "truth.y", scratch / "plan"
        measure.run([worker, "encode", path / "jpg", "--session", path.name, "--output", scratch, "--jobs", "1"])
        self.segments = segments_of(scratch / path.name)
        self.frames = {frame.name: frame for frame in sorted((path / "jpg").glob("*.jpg"))}
        self.size = (self.segments[0]["width"], self.segments[0]["height"])
        # Without OWN, the base's own part of the parameters, to compare the base with plain presets of x264.
        self.fixed = self.segments[0]["encoder"]["parameters"].replace(f":{OWN}", "")
        self.plan.write_text(limit.plan(self.segments, path / "jpg"))
        lines = self.plan.read_text().splitlines()
        self.pictures = [Path(line.split(" ", 1)[1]) for line in lines if line != "segment"]
        for picture in self.pictures:
            luma(["-i", truth_of(picture)], self.truth)
        self.lossless = (path / "png").is_dir()
        if self.name in READ_SESSIONS:
            self.words = self.read(self.truth)

    def stream(self, setting):
        return self.scratch / f"{SETTINGS.index(setting)}.h264"

    def encode(self, program, setting):
        """Returns bytes and CPU milliseconds a frame."""
        parameters = f"{self.fixed}:{setting.parameters}".rstrip(":")
        with open(self.plan) as script:
            report = subprocess.run([program, setting.preset, str(setting.crf), parameters, self.stream(setting)],
                                    stdin=script, stdout=subprocess.PIPE, text=True, check=True).stdout
        size, _, cpu = report.split()
        return int(size) / len(self.frames), float(cpu) / len(self.frames)

    @contextmanager
    def luma(self, sources):
        with tempfile.NamedTemporaryFile(dir=self.scratch) as file:
            for source in sources:
                luma(source, file.name, size=self.size)
            yield file.name

    def sources(self, setting):
        if setting == JPEG:
            return [["-i", picture] for picture in self.pictures]
        return [["-r", "1", "-i", self.stream(setting)]]

    def likeness(self, setting):
        with self.luma(self.sources(setting)) as coded:
            values = ssim(coded, self.truth, self.size)
        assert len(values) == len(self.pictures), f"{setting}: {len(values)} pictures, not {len(self.pictures)}"
        return values

    def legibility(self, setting):
        """Returns the similarity of the words read here to those read in the reference, from 0 to 1."""
        with self.luma(self.sources(setting)) as coded:
            pairs = zip(self.words, self.read(coded))
            return statistics.mean(difflib.SequenceMatcher(None, *pair, autojunk=False).ratio() for pair in pairs)

    def read(self, luma):
        """Reads the words of the middle picture of each READ-th part of the session."""
        width, height = self.size
        texts = []
        with open(luma, "rb") as file:
            for part in range(READ):
                file.seek((2 * part + 1) * len(self.pictures) // (2 * READ) * width * height)
                picture = b"P5 %d %d 255\n" % self.size + file.read(width * height)
                texts.append(subprocess.run(["tesseract", "stdin", "stdout", "--psm", "11"], input=picture, check=True,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode().split())
        return texts

    def recipe(self):
        """Returns bytes a frame of the recipe for each segment, and SSIM of the pictures that we code."""
        folder = self.scratch / "recipe"
        _, parts = recipe_segments(self.segments, self.frames, folder)
        values = similarity(self.segments, recipe_places(self.segments, parts), self.frames, folder)
        shown = [frame["source"] for segment in self.segments for frame in segment["frames"]]
        coded = {picture.name for picture in self.pictures}
        size = sum(part.stat().st_size for part in parts) / len(self.frames)
        return size, [value for name, value in zip(shown, values) if name in coded]


def encode(program, sessions):
    """Measures bytes and CPU of each setting in each session; keeps the streams."""
    measured = defaultdict(dict)
    for turn in range(ROUNDS):
        print(f"CPU, round {turn + 1} of {ROUNDS} …", file=sys.stderr)
        for setting in SETTINGS:
            for session in sessions:
                size, cpu = session.encode(program, setting)
                least = measured[setting, session.name].get("cpu", cpu)
                measured[setting, session.name].update(bytes=size, cpu=min(cpu, least))
    return measured


def compare(sessions, measured):
    """Measures SSIM of all settings, the comparison rows, and legibility of the best settings; on all cores."""
    def like(job):
        measured[job[0], job[1].name]["ssim"] = job[1].likeness(job[0])

    def legible(job):
        measured[job[0], job[1].name]["ocr"] = job[1].legibility(job[0])

    def recipe(session):
        measured[RECIPE, session.name] = dict(zip(("bytes", "ssim"), session.recipe()))

    for session in sessions:
        measured[JPEG, session.name]["bytes"] = statistics.mean(frame.stat().st_size for frame in session.frames.values())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        print("SSIM …", file=sys.stderr)
        lossless = [(JPEG, session) for session in sessions if session.lossless]
        list(pool.map(like, lossless + [(setting, session) for setting in SETTINGS for session in sessions]))
        list(pool.map(recipe, sessions))
        print("OCR …", file=sys.stderr)
        picked = [JPEG, *dict.fromkeys(LADDER + PLAIN_LADDER + best(measured))]
        list(pool.map(legible, [(row, session) for row in picked for session in sessions if session.name in READ_SESSIONS]))


def best(measured):
    """Returns the settings that no other one beats in CPU, bytes and SSIM at once, over sessions with an original."""
    totals = {}
    for setting in SETTINGS:
        runs = [measured[setting, name] for name in READ_SESSIONS]
        totals[setting] = (sum(run["cpu"] for run in runs), sum(run["bytes"] for run in runs),
                           -sum(likeness(measured, setting, name) for name in READ_SESSIONS))
    return [setting for setting, own in totals.items()
            if not any(all(theirs < ours for theirs, ours in zip(other, own)) for other in totals.values())]


def cpu(measured, setting):
    """Returns the CPU of all sessions, as a ratio to the base."""
    return (sum(measured[setting, name]["cpu"] for name in SESSIONS)
            / sum(measured[BASE, name]["cpu"] for name in SESSIONS))


def likeness(measured, row, name):
    return statistics.mean(measured[row, name]["ssim"])


def likest(measured, name):
    """Returns the step of the base's ladder with the best SSIM; more bytes only code the noise of the JPEG."""
    return max(LADDER, key=lambda rung: likeness(measured, rung, name))


def same_likeness(measured, setting, name):
    """Returns bytes as a ratio to the base at the same SSIM, interpolated between two steps, up to the base's best."""
    rungs = LADDER[LADDER.index(likest(measured, name)):][::-1]
    values = [likeness(measured, rung, name) for rung in rungs]
    sizes = [measured[rung, name]["bytes"] for rung in rungs]
    size = numpy.exp(numpy.interp(likeness(measured, setting, name), values, numpy.log(sizes), numpy.nan, numpy.nan))
    return measured[setting, name]["bytes"] / size


def cells(runs, key, form):
    return [form(run[key]) if key in run else "" for run in runs]


def line(measured, row, ratio, mark):
    runs = [measured[row, name] for name in SESSIONS]
    like = cells(runs, "ssim", lambda values: f"{statistics.mean(values):.4f} ({min(values):.3f})")
    legible = cells([measured[row, name] for name in READ_SESSIONS], "ocr", "{:.3f}".format)
    texts = [row if isinstance(row, str) else row.name, ratio, *cells(runs, "cpu", "{:.2f}".format),
             *cells(runs, "bytes", "{:.0f}".format), *like, *legible, mark]
    return "| " + " | ".join(texts) + " |"


def table(measured):
    columns = ["setting", "CPU, × base", *(f"CPU ms, {name}" for name in SESSIONS), *(f"bytes, {name}" for name in SESSIONS),
               *(f"SSIM-Y (worst), {name}" for name in SESSIONS), *(f"OCR, {name}" for name in READ_SESSIONS), "best"]
    lines = ["| " + " | ".join(columns) + " |", "|---" + "|--:" * (len(columns) - 2) + "|:-:|"]
    winners = best(measured)
    for setting in SETTINGS:
        lines.append(line(measured, setting, f"{cpu(measured, setting):.2f}", "●" if setting in winners else ""))
    lines += [line(measured, row, "", "") for row in (RECIPE, JPEG)]
    return "\n".join(lines)


def axes(measured):
    """Returns a line for each axis: CPU, and bytes for the same SSIM, against the base."""
    peaks = ", ".join(f"in {name} at CRF {likest(measured, name).crf}" for name in READ_SESSIONS)
    lines = [f"- **Rate factor**: the base is most like the truth {peaks}; more bytes go into the JPEG's own noise."]
    for axis, rows in list(AXES.items())[1:]:
        texts = []
        for setting in rows:
            ratios = [same_likeness(measured, setting, name) for name in SESSIONS]
            sizes = " · ".join("–" if numpy.isnan(ratio) else f"{ratio:.2f}" for ratio in ratios)
            texts.append(f"{setting.name}: {cpu(measured, setting):.2f} × CPU, {sizes} × bytes")
        lines.append(f"- **{axis}**: " + "; ".join(texts) + ".")
    return "\n".join(lines)


def series(measured, rows, name, key):
    """Returns bytes and legibility, or 1 - SSIM, of the rows that have it."""
    runs = [measured[row, name] for row in rows]
    return zip(*((run["bytes"], 1 - statistics.mean(run[key]) if key == "ssim" else run[key]) for run in runs if key in run))


def plot_likeness(axis, measured, name):
    axis.plot(*series(measured, LADDER, name, "ssim"), color="0.6", linewidth=1, zorder=1)
    axis.plot(*series(measured, PLAIN_LADDER, name, "ssim"), color="0.6", linewidth=1, linestyle=":", zorder=1)
    costs = [cpu(measured, setting) for setting in SETTINGS]
    points = axis.scatter(*series(measured, SETTINGS, name, "ssim"), c=costs, s=18, cmap="plasma_r", norm=colors.LogNorm(),
                          edgecolor="0.3", linewidth=0.3, zorder=2)
    axis.scatter(*series(measured, [RECIPE, JPEG], name, "ssim"), color="black", marker="x", s=18)
    for row, text, place, side in MARKS:
        (size,), (value,) = series(measured, [row], name, "ssim")
        axis.annotate(text, (size, value), place, textcoords="offset points", ha=side, fontsize=7)
    axis.set(xscale="log", yscale="log", xlabel="bytes a frame", ylabel="SSIM-Y", title=f"{name}: likeness")
    axis.set_yticks([0.003, 0.004, 0.005, 0.006, 0.008, 0.01, 0.015, 0.02, 0.03])
    axis.yaxis.set_major_formatter(lambda lacking, _: f"{1 - lacking:.3f}")
    axis.yaxis.set_minor_locator(ticker.NullLocator())
    axis.invert_yaxis()
    return points


def plot_legibility(axis, measured):
    for name, colour in zip(READ_SESSIONS, ("tab:blue", "tab:red")):
        axis.plot(*series(measured, LADDER, name, "ocr"), color=colour, marker="o", markersize=3, label=f"{name}, base")
        axis.plot(*series(measured, PLAIN_LADDER, name, "ocr"), color=colour, marker="o", markersize=3, linestyle=":",
                  label=f"{name}, superfast as it is")
        axis.axhline(measured[JPEG, name]["ocr"], color=colour, linewidth=0.7, linestyle="--", label=f"{name}, JPEG")
    axis.set(xscale="log", xlabel="bytes a frame", ylabel="words read as in the truth", title="legibility")
    axis.legend(fontsize=7)


def plot(measured, target):
    drawing.start("sweep", 8, 9)
    figure, panels = pyplot.subplots(1, 3, figsize=(12, 4), layout="constrained")
    for panel, name in zip(panels, READ_SESSIONS):
        points = plot_likeness(panel, measured, name)
    plot_legibility(panels[2], measured)
    bar = figure.colorbar(points, ax=panels[:2], ticks=[0.8, 1, 1.5, 2, 3], format="%g", label="CPU, × base", aspect=30)
    bar.minorticks_off()
    for panel in panels:
        panel.grid(color="0.92")
        panel.set_axisbelow(True)
        panel.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        panel.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
        panel.xaxis.set_minor_locator(ticker.NullLocator())
    drawing.save(figure, target)


def report(measured, sessions):
    return f"""# Settings

`make sweep`, {date.today()}, {measure.machine()}. The base: preset superfast, CRF {BASE.crf}, `{OWN}`, on top of the worker's own
`{sessions[0].fixed}`. Beside it
one thing is changed at a time; a row that says only preset and CRF has nothing else on top.

- CPU: milliseconds a captured frame, of encoding alone, in a bare loop (`limit.c`); the least of {ROUNDS} rounds in turn.
- Bytes: a captured frame, of the bare stream with its parameter sets and x264's advertisement.
- SSIM-Y: mean of the coded pictures (what is held is coded once), the worst in brackets; against the lossless truth, in s07
  against the captured file. It does not see colour.
- OCR: how like the words that tesseract reads here are to those that it reads in the truth (twice the words that match, by
  all words of both); the mean of {READ} pictures spread over the session.
- ●: no other setting is superior in CPU, bytes and SSIM-Y at once, over {" and ".join(READ_SESSIONS)} together.
- The recipe: one `ffmpeg -preset ultrafast` for each segment, as in [RESULTS.md](RESULTS.md), with CPU in there.
- `small` and `reencode` also search motion far, which this page does not: see [LIMITS.md](LIMITS.md#motion).

`partitions=i4x4` is all that the base has left without the 8×8 transform: the same bytes, so what its CPU differs by is
noise. OCR is fickle: a few hundredths are chance.

![Bytes against SSIM-Y and legibility](sweep.svg)

{table(measured)}

The effect of each axis beside the base: CPU, and bytes in {", ".join(SESSIONS)} where the base, at another CRF, has the same
SSIM-Y (– where its ladder does not reach, or does so only beyond its best).

{axes(measured)}
"""


def main():
    os.environ["OMP_THREAD_LIMIT"] = "1"
    corpus = pictures.corpus(sys.argv[1] if len(sys.argv) > 1 else None)
    if not corpus:
        sys.exit(f"sweep.py: no corpus with {', '.join(SESSIONS)}; make sweep CORPUS=DIR")
    scratch = Path(tempfile.mkdtemp())
    try:
        program, worker = limit.build(scratch), measure.built()
        print("truth …", file=sys.stderr)
        sessions = [Session(worker, corpus / name, scratch / name) for name in SESSIONS]
        measured = encode(program, sessions)
        compare(sessions, measured)
    finally:
        shutil.rmtree(scratch)
    folder = measure.ROOT / "Benchmarks"
    (folder / "SWEEP.md").write_text(report(measured, sessions))
    plot(measured, folder / "sweep.svg")


if __name__ == "__main__":
    main()
