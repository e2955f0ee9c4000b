#!/usr/bin/env python3
"""Compares the worker with common ffmpeg recipes, over the same frames, in one run.

    make bench                     the sessions of ../shared/corpus, or of fixtures/ if that directory is missing
    make bench CORPUS=DIR          DIR/<session>/jpg/<unix ms>.jpg; lossless originals of the same names in png/

Each session is encoded by
  ours              encoder-worker encode, one batch, --jobs 1, balanced
  recipe a segment  one ffmpeg for each of our segments' frames
  bare loop         limit.c: the same decoder, encoder and amount of work, and nothing else
  recipe a session  one ffmpeg for the whole session (which makes no segments)
in turn, ROUNDS times (ours and the bare loop CLOSE_ROUNDS times in each). CPU is user + system time of the process and
of its decoder processes, the minimum of the rounds. SSIM is of luma, the mean over all frames. The reference is the
lossless original if there is one, else the captured file.
The script then measures three more things: the cost of the sandbox (all sessions with and without it in turn,
SANDBOX_ROUNDS times), the costs that one session does not show (scale.py), and a profile.
It writes Benchmarks/RESULTS.md and its chart.
"""

import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

from matplotlib import pyplot, ticker

import limit
import scale

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 5
CLOSE_ROUNDS = 4
SANDBOX_ROUNDS = 15
PAD = "pad=ceil(iw/2)*2:ceil(ih/2)*2"
OURS, LIMIT, SEGMENT, SESSION = "ours", "bare loop", "recipe a segment", "recipe a session"


def run(command, script=os.devnull):
    """Runs a command. Returns CPU seconds with its children, peak memory in MB without them, and wall-clock seconds."""
    start = time.monotonic()
    with open(script) as text:
        child = subprocess.Popen(command, stdin=text, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {child.returncode}\n{errors.decode()}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, time.monotonic() - start


def recipe(frames, end, folder):
    """Encodes as common recorder back ends do: with the concat demuxer and a duration for each picture."""
    instants = [int(frame.stem) for frame in frames] + [end]
    script = folder / "list.txt"
    lines = "".join(
        f"file '{frame}'\nduration {(after - before) / 1000}\n"
        for frame, before, after in zip(frames, instants, instants[1:]))
    script.write_text(lines + f"file '{frames[-1]}'\n")
    output = folder / f"{frames[0].stem}.mp4"
    used = run(["ffmpeg", "-y", "-f", "concat", "-safe", "0", "-i", script, "-vf", PAD, "-fps_mode", "vfr",
                "-pix_fmt", "yuv420p", "-preset", "ultrafast", output])
    return used, output


def recipe_segments(segments, frames, folder):
    """Runs the recipe for each of our segments. Returns the total cost and the files."""
    folder.mkdir()
    captured = [[frames[frame["source"]] for frame in segment["frames"]] for segment in segments]
    runs, files = zip(*(recipe(own, segment["endMs"], folder) for own, segment in zip(captured, segments)))
    cpu, memory, wall = zip(*runs)
    return (sum(cpu), max(memory), sum(wall)), files


def luma(source, target, picked=None, size=None):
    """Writes the luma planes of a video's pictures, full range; of the pictures at the indexes `picked`, if given."""
    filters = [] if picked is None else ["select='" + "+".join(f"eq(n\\,{n})" for n in picked) + "'"]
    filters += ["scale=out_color_matrix=bt601:out_range=pc,format=yuvj444p", "extractplanes=y"]
    if size:
        filters.append(f"crop={size[0]}:{size[1]}:0:0")
    with open(target, "ab") as file:
        subprocess.run(["ffmpeg", "-v", "error", *source, "-map", "0:v", "-vf", ",".join(filters), "-fps_mode",
                        "passthrough", "-f", "rawvideo", "-"], stdout=file, check=True)


def ssim(coded, truth, size):
    """Returns the SSIM of each pair of pictures."""
    raw = ["-f", "rawvideo", "-pix_fmt", "gray", "-s", f"{size[0]}x{size[1]}", "-r", "1"]
    report = subprocess.run(["ffmpeg", "-v", "error", *raw, "-i", coded, *raw, "-i", truth, "-lavfi", "ssim=stats_file=-",
                             "-f", "null", "-"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [float(value) for value in re.findall(r" Y:([\d.]+)", report)]


def segments_of(output):
    manifests = sorted(output.glob("segment-*.json"))
    return [json.loads(manifest.read_text()) for manifest in manifests]


def truth_of(captured):
    """Returns the reference file of a captured file: the lossless original if there is one, else the file itself."""
    lossless = captured.parent.parent / "png" / (captured.stem + ".png")
    return lossless if lossless.exists() else captured


def similarity(segments, videos, frames, folder):
    """Returns the SSIM of each frame. `videos` has, for each segment, a file and the indexes of its frames."""
    coded, truth = folder / "coded.y", folder / "truth.y"
    values = []
    for segment, (video, picked) in zip(segments, videos):
        for file in (coded, truth):
            file.unlink(missing_ok=True)
        size = (segment["width"], segment["height"])
        luma(["-i", video], coded, picked, size)
        for frame in segment["frames"]:
            luma(["-i", truth_of(frames[frame["source"]])], truth)
        values += ssim(coded, truth, size)
    return values


def our_places(segment, video):
    probe = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "packet=pts", "-of",
                            "csv=p=0", video], stdout=subprocess.PIPE, text=True, check=True).stdout
    instants = [int(line.strip(",")) for line in probe.split()]
    start, places = 0, []
    for frame in segment["frames"]:
        places.append(instants.index(start * 90))
        start += frame["holdMs"]
    return places


def recipe_places(segments, parts):
    return [(video, list(range(len(segment["frames"])))) for segment, video in zip(segments, parts)]


def session(worker, program, path, scratch):
    frames = {frame.name: frame for frame in sorted((path / "jpg").glob("*.jpg"))}
    rows = {OURS: [], LIMIT: [], SEGMENT: [], SESSION: []}
    for turn in range(ROUNDS):
        # Close results get more rounds.
        for again in range(CLOSE_ROUNDS):
            output = scratch / f"ours-{turn}-{again}"
            used = run([worker, "encode", path / "jpg", "--session", path.name, "--output", output, "--jobs", "1"])
            segments = segments_of(output / path.name)
            rows[OURS].append((used, sum(segment["bytes"] for segment in segments)))

            script, stream = scratch / "plan", scratch / "stream.h264"
            if not script.exists():
                script.write_text(limit.plan(segments, path / "jpg"))
            settings = segments[0]["encoder"]
            used = run([program, settings["preset"], str(settings["rateFactor"]), settings["parameters"], stream], script)
            rows[LIMIT].append((used, stream.stat().st_size))

        used, parts = recipe_segments(segments, frames, scratch / f"segments-{turn}")
        rows[SEGMENT].append((used, sum(part.stat().st_size for part in parts)))

        folder = scratch / f"session-{turn}"
        folder.mkdir()
        used, film = recipe(list(frames.values()), segments[-1]["endMs"], folder)
        rows[SESSION].append((used, film.stat().st_size))

    ours = [(output / path.name / s["file"], our_places(s, output / path.name / s["file"])) for s in segments]
    theirs = recipe_places(segments, parts)
    likeness = {name: statistics.mean(similarity(segments, videos, frames, scratch))
                for name, videos in ((OURS, ours), (SEGMENT, theirs))}
    result = {}
    for name, runs in rows.items():
        cpu, memory, wall = zip(*(used for used, _ in runs))
        result[name] = {
            "cpu": min(cpu) * 1000 / len(frames),
            "wall": min(wall) * 1000 / len(frames),
            "memory": statistics.median(memory),
            "bytes": runs[-1][1] / len(frames),
            "ssim": likeness.get(name),
        }
    return len(frames), len(segments), result


def sandbox(worker, paths, scratch):
    """Returns a sentence with the cost of decoding in a separate process."""
    rounds = {"require": [], "off": []}
    for turn in range(SANDBOX_ROUNDS):
        for mode in sorted(rounds, reverse=turn % 2 == 0):
            output = scratch / f"sandbox-{turn}-{mode}"
            rounds[mode].append(sum(
                run([worker, "encode", path / "jpg", "--session", path.name, "--output", output, "--jobs", "1",
                     "--sandbox", mode])[0] for path in paths))
            shutil.rmtree(output)
    ratios = sorted(inside / outside for inside, outside in zip(rounds["require"], rounds["off"]))
    least = min(rounds["require"]) / min(rounds["off"])
    quarter = len(ratios) // 4
    return (f"The sandbox, over all sessions: {statistics.median(ratios):.3f} times the CPU of `--sandbox off` (median of "
            f"{len(ratios)} rounds in turn; half of them between {ratios[quarter]:.3f} and {ratios[-1 - quarter]:.3f}; of the "
            f"least of each {least:.3f}).")


def corpus(argument):
    if argument:
        return Path(argument)
    beside = ROOT.parent / "shared" / "corpus"
    return beside if beside.is_dir() else None


def sessions(folder, scratch):
    if folder:
        return sorted(path.parent for path in folder.glob("*/jpg"))
    # Without a corpus, use the plain fixtures, although they are small.
    for name in ("jittered", "irregular-3fps", "odd-size"):
        (scratch / "corpus" / name).mkdir(parents=True)
        (scratch / "corpus" / name / "jpg").symlink_to(ROOT / "fixtures" / name)
    return sorted((scratch / "corpus").iterdir())


def table(measured):
    lines = ["| session | | CPU ms a frame | × ours | wall ms a frame | bytes a frame | ours / this | SSIM-Y | peak RSS, MB |",
             "|---|---|--:|--:|--:|--:|--:|--:|--:|"]
    for name, (frames, segments, rows) in measured.items():
        for row, values in rows.items():
            likeness = f"{values['ssim']:.4f}" if values["ssim"] else ""
            lines.append(
                f"| {name}: {frames} frames, {segments} segments | {row} | {values['cpu']:.2f} | "
                f"{values['cpu'] / rows[OURS]['cpu']:.2f} | {values['wall']:.2f} | {values['bytes']:.0f} | "
                f"{rows[OURS]['bytes'] / values['bytes']:.2f} | {likeness} | {values['memory']:.0f} |")
    return "\n".join(lines)


def chart(measured, target):
    """Draws CPU and bytes of each session side by side, and labels our results."""
    pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "results", "font.size": 8, "axes.titlesize": 9})
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 3.2), layout="constrained")
    colours = {OURS: "tab:blue", LIMIT: "0.75", SEGMENT: "tab:red", SESSION: "tab:orange"}
    for panel, key, title in zip(panels, ("cpu", "bytes"), ("CPU ms a frame", "bytes a frame")):
        for place, row in enumerate(colours):
            places = [number + (place - 1.5) * 0.2 for number in range(len(measured))]
            bars = panel.bar(places, [rows[row][key] for _, _, rows in measured.values()], 0.19, label=row, color=colours[row])
            if row == OURS:
                panel.bar_label(bars, fmt="%.1f" if key == "cpu" else "%.0f", fontsize=6, padding=1)
        panel.set(title=title, yscale="log", xticks=range(len(measured)))
        panel.set_xticklabels(measured)
        panel.set_ylim(top=4 * panel.get_ylim()[1])
        panel.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,g}"))
        panel.grid(axis="y", color="0.92")
        panel.set_axisbelow(True)
    panels[0].legend(fontsize=6, ncols=2, loc="upper left")
    figure.savefig(target, metadata={"Date": None})


def machine():
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    version = subprocess.run(["ffmpeg", "-version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[2]
    return f"{os.cpu_count()} × {model.group(1) if model else platform.machine()}, Linux {platform.release()}, ffmpeg {version}"


def built():
    return subprocess.run(["swift", "build", "-c", "release", "--show-bin-path"], stdout=subprocess.PIPE, text=True,
                          check=True, cwd=ROOT).stdout.strip() + "/encoder-worker"


def main():
    worker = built()
    scratch = Path(tempfile.mkdtemp())
    try:
        measured = {}
        program = limit.build(scratch)
        paths = sessions(corpus(sys.argv[1] if len(sys.argv) > 1 else None), scratch)
        for path in paths:
            folder = scratch / path.name
            folder.mkdir()
            print(f"{path.name} …", file=sys.stderr)
            measured[path.name] = session(worker, program, path, folder)
            shutil.rmtree(folder)
        print("sandbox …", file=sys.stderr)
        beside = sandbox(worker, paths, scratch)
        print("scale …", file=sys.stderr)
        scales, profile = scale.report(worker, paths, scratch / "scale")
    finally:
        shutil.rmtree(scratch)
    text = report(table(measured), beside, scales, profile, paths[0].name)
    print(text)
    if len(sys.argv) <= 1:
        (ROOT / "Benchmarks" / "RESULTS.md").write_text(text)
        chart(measured, ROOT / "Benchmarks" / "results.svg")


def report(measured, sandbox, scales, profile, profiled):
    return f"""# Results

`make bench`, {date.today()}, {machine()}. `balanced`, `--jobs 1`; the least CPU of {ROUNDS} rounds in turn, each program in
each (ours and the bare loop {CLOSE_ROUNDS} times). SSIM-Y is against the lossless truth where the session has one (s01, s04), else against the captured file.
The recipe: `ffmpeg -y -f concat -safe 0 -i LIST -vf {PAD} -fps_mode vfr -pix_fmt yuv420p -preset ultrafast OUT`.
The bare loop decodes and encodes what we do, with the same libraries and settings, and nothing else (`limit.c`).

![CPU and bytes a frame](results.svg)

{measured}

{sandbox}

Costs that do not show when one session is encoded once (`scale.py`):

{scales}

A profile: {profiled} in batches of ten frames, `run --drain --profile --jobs 1`.

```
{profile}
```
"""


if __name__ == "__main__":
    main()
