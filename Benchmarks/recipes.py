"""The ffmpeg recipe that bench.py compares with: for each segment, or for a whole session."""

from measure import added, run

PAD = "pad=ceil(iw/2)*2:ceil(ih/2)*2"
PRESETS = ("ultrafast", "veryfast")


def options(preset):
    return ["-vf", PAD, "-fps_mode", "vfr", "-pix_fmt", "yuv420p", "-preset", preset]


def recipe(frames, end, folder, preset=PRESETS[0], run=run):
    """Encodes as common recorder back ends do: with the concat demuxer and a duration for each picture."""
    instants = [int(frame.stem) for frame in frames] + [end]
    script = folder / "list.txt"
    lines = "".join(
        f"file '{frame}'\nduration {(after - before) / 1000}\n"
        for frame, before, after in zip(frames, instants, instants[1:]))
    script.write_text(lines + f"file '{frames[-1]}'\n")
    output = folder / f"{frames[0].stem}.mp4"
    return run(["ffmpeg", "-y", "-f", "concat", "-safe", "0", "-i", script, *options(preset), output]), output


def recipe_segments(segments, frames, folder, preset=PRESETS[0], run=run):
    """Runs the recipe for each of our segments. Returns what was used in all, and the files."""
    folder.mkdir()
    pictures = [[frames[frame["source"]] for frame in segment["frames"]] for segment in segments]
    used, files = zip(*(recipe(own, segment["endMs"], folder, preset, run) for own, segment in zip(pictures, segments)))
    return added(used), files
