"""Measures sessions beside the ffmpeg recipe and beside the bare loop. For bench.py.

Each session is encoded by
  ours              encoder-worker encode, one batch, --jobs 1, balanced
  bare loop         limit.c: the same decoder, encoder and amount of work, and nothing else; for JPEG
  recipe a segment  one ffmpeg for each of our segments' frames, with -preset ultrafast and veryfast
  recipe a session  one ffmpeg for the whole session (which makes no segments), with the same two
in turn, for some rounds (ours and the bare loop CLOSE_ROUNDS times in each). CPU is the minimum of the rounds.
SSIM is of luma, the mean over all frames, against the lossless original if there is one, else the captured file.
Afterwards each program runs once more to count its instructions (meters.py): under valgrind over the first frames.
"""

import shutil
import statistics
import sys
from functools import partial

import limit
from likeness import film_places, our_places, recipe_places, segments_of, similarity
from measure import at_once, batch, in_turn, ratios
from meters import Clock
from pictures import frames_of
from recipes import PRESETS, recipe, recipe_segments

# The programs whose results are close get more rounds.
CLOSE_ROUNDS = 3
# Rounds of the sandbox for each round of the rest.
SANDBOX_ROUNDS = 3
OURS, LIMIT, SEGMENT, SESSION = "ours", "bare loop", "recipe a segment", "recipe a session"
# The names of the recipes' rows, by preset.
SEGMENTS = {PRESETS[0]: SEGMENT, PRESETS[1]: f"{SEGMENT}, {PRESETS[1]}"}
SESSIONS = {PRESETS[0]: SESSION, PRESETS[1]: f"{SESSION}, {PRESETS[1]}"}


def encode(meter, worker, folder, output):
    """Encodes a directory of frames as session `s`."""
    shutil.rmtree(output, ignore_errors=True)
    command = [meter.program(worker), "encode", folder, "--session", "s", "--output", output, "--jobs", "1"]
    return meter.run([*command, *meter.options])


class Runs:
    """Encodes a session by each program, and keeps the last output of each."""

    def __init__(self, meter, worker, program, session, scratch):
        scratch.mkdir()
        self.meter, self.worker, self.program, self.scratch = meter, worker, program, scratch
        self.frames = {frame.name: frame for frame in frames_of(session.folder)[:meter.frames]}
        self.folder = batch(scratch / "frames", self.frames.values()) if meter.frames else session.folder
        # limit.c decodes JPEG.
        self.bare = all(frame.suffix == ".jpg" for frame in self.frames.values())
        self.used, self.bytes, self.videos = {}, {}, {}

    def keep(self, name, used, files):
        self.used.setdefault(name, []).append(used)
        self.videos[name] = files
        self.bytes[name] = sum(file.stat().st_size for file in files)

    def ours(self):
        used = encode(self.meter, self.worker, self.folder, self.scratch / OURS)
        self.segments = segments_of(self.scratch / OURS / "s")
        self.keep(OURS, used, [self.scratch / OURS / "s" / segment["file"] for segment in self.segments])
        if self.bare:
            self.by_loop()

    def by_loop(self):
        script, stream = self.scratch / "plan", self.scratch / "stream.h264"
        if not script.exists():
            script.write_text(limit.plan(self.segments, self.folder))
        settings = self.segments[0]["encoder"]
        command = [self.program, settings["preset"], settings["rateFactor"], settings["parameters"], stream]
        self.keep(LIMIT, self.meter.run(command, script), [stream])

    def by_ffmpeg(self):
        for preset in PRESETS:
            folder = self.scratch / preset
            shutil.rmtree(folder, ignore_errors=True)
            self.keep(SEGMENTS[preset], *recipe_segments(self.segments, self.frames, folder, preset, self.meter.run))
            (folder / "film").mkdir()
            used, film = recipe(list(self.frames.values()), self.segments[-1]["endMs"], folder / "film", preset,
                                self.meter.run)
            self.keep(SESSIONS[preset], used, [film])

    def likeness(self):
        """Returns the mean SSIM of each program's output; None if it lacks a frame."""
        def mean(places):
            return places and statistics.mean(similarity(self.segments, places, self.frames, self.scratch))

        ours = [(file, our_places(segment, file)) for segment, file in zip(self.segments, self.videos[OURS])]
        found = {OURS: mean(ours)}
        for preset in PRESETS:
            found[SEGMENTS[preset]] = mean(recipe_places(self.segments, self.videos[SEGMENTS[preset]]))
            found[SESSIONS[preset]] = mean(film_places(self.segments, self.frames, *self.videos[SESSIONS[preset]]))
        return found


def timed(worker, program, session, scratch, rounds):
    """Returns the rows of a session: CPU, wall clock, memory, bytes and likeness of each program."""
    runs = Runs(Clock(), worker, program, session, scratch)
    for _ in range(rounds):
        for _ in range(CLOSE_ROUNDS):
            runs.ours()
        runs.by_ffmpeg()
    likeness = runs.likeness()

    def cpu(name):
        """Returns the CPU of each round: the least of the runs in it."""
        spent = [one.cpu for one in runs.used[name]]
        times = len(spent) // rounds
        return [min(spent[turn * times:(turn + 1) * times]) for turn in range(rounds)]

    rows, frames = {}, len(runs.frames)
    for name, used in runs.used.items():
        rows[name] = {"cpu": min(cpu(name)) * 1_000 / frames, "wall": min(one.wall for one in used) * 1_000 / frames,
                      "rounds": [one / ours for one, ours in zip(cpu(name), cpu(OURS))],
                      "memory": statistics.median(one.memory for one in used), "bytes": runs.bytes[name] / frames,
                      "ssim": likeness.get(name)}
    shutil.rmtree(scratch)
    return {"name": session.name, "kind": session.kind, "frames": frames, "segments": len(runs.segments), "rows": rows}


def counted(meter, worker, program, session, scratch):
    """Returns the instructions that each program takes for a frame."""
    runs = Runs(meter, worker, program, session, scratch)
    runs.ours()
    runs.by_ffmpeg()
    shutil.rmtree(scratch)
    return {name: used.instructions / len(runs.frames) for name, (used,) in runs.used.items()}


def compare(meter, worker, program, sessions, scratch, rounds):
    result = []
    for session in sessions:
        print(f"{session.kind} {session.name} …", file=sys.stderr)
        result.append(timed(worker, program, session, scratch / f"{session.kind} {session.name}", rounds))
    print("instructions …", file=sys.stderr)
    counts = at_once([partial(counted, meter, worker, program, session, scratch / f"{session.kind} {session.name}")
                      for session in sessions])
    for found, instructions in zip(result, counts):
        for name, row in found["rows"].items():
            row["instructions"] = instructions[name]
    return result


def sandbox(meter, worker, paths, scratch, rounds):
    """Measures the cost of decoding in a separate process: all sessions with and without it, in turn."""
    def spent(meter, mode):
        output, total = scratch / f"sandbox-{mode}", 0
        for path in paths:
            command = [worker, "encode", path / "jpg", "--session", path.name, "--output", output, "--jobs", "1"]
            used = meter.run([*command, "--sandbox", mode])
            total += used.cpu if used.instructions is None else used.instructions
        shutil.rmtree(output)
        return total

    spent_by = in_turn(SANDBOX_ROUNDS * rounds, {mode: partial(spent, Clock(), mode) for mode in ("require", "off")})
    instructions = spent(meter, "require") / spent(meter, "off") if meter.sandboxed else None
    return ratios(spent_by["require"], spent_by["off"]) | {"instructions": instructions}
