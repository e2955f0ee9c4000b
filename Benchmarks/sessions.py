"""Measures sessions beside the ffmpeg recipe and beside the bare loop. For bench.py.

Each session is encoded by
  ours              encoder-worker encode, one batch, --jobs 1, balanced
  recipe a segment  one ffmpeg for each of our segments' frames
  bare loop         limit.c: the same decoder, encoder and amount of work, and nothing else; for JPEG
  recipe a session  one ffmpeg for the whole session (which makes no segments)
in turn, for some rounds (all but the recipe a segment CLOSE_ROUNDS times in each). CPU is the minimum of the rounds.
SSIM is of luma, the mean over all frames, against the lossless original if there is one, else the captured file.
"""

import shutil
import statistics
import sys
from functools import partial

import limit
from likeness import film_places, our_places, recipe_places, segments_of, similarity
from measure import in_turn, ratios, run
from pictures import frames_of
from recipes import recipe, recipe_segments

# The programs whose results are close get more rounds.
CLOSE_ROUNDS = 3
# Rounds of the sandbox for each round of the rest.
SANDBOX_ROUNDS = 3
OURS, LIMIT, SEGMENT, SESSION = "ours", "bare loop", "recipe a segment", "recipe a session"


class Runs:
    """Encodes a session by each program, and keeps the last output of each."""

    def __init__(self, worker, program, session, scratch):
        scratch.mkdir()
        self.worker, self.program, self.session, self.scratch = worker, program, session, scratch
        self.frames = {frame.name: frame for frame in frames_of(session.folder)}
        self.used = {OURS: [], LIMIT: [], SEGMENT: [], SESSION: []}
        self.bytes = {}

    def new(self, name):
        folder = self.scratch / name
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def ours(self):
        output = self.new(OURS)
        self.used[OURS].append(run([self.worker, "encode", self.session.folder, "--session", "s", "--output", output,
                                    "--jobs", "1"])[:3])
        self.folder = output / "s"
        self.segments = segments_of(self.folder)
        self.bytes[OURS] = sum(segment["bytes"] for segment in self.segments)

    def bare(self):
        script, stream = self.scratch / "plan", self.scratch / "stream.h264"
        if not script.exists():
            script.write_text(limit.plan(self.segments, self.session.folder))
        settings = self.segments[0]["encoder"]
        command = [self.program, settings["preset"], settings["rateFactor"], settings["parameters"], stream]
        self.used[LIMIT].append(run(command, script)[:3])
        self.bytes[LIMIT] = stream.stat().st_size

    def by_segment(self):
        used, self.parts = recipe_segments(self.segments, self.frames, self.new(SEGMENT))
        self.used[SEGMENT].append(used)
        self.bytes[SEGMENT] = sum(part.stat().st_size for part in self.parts)

    def by_session(self):
        folder = self.new(SESSION)
        folder.mkdir()
        used, self.film = recipe(list(self.frames.values()), self.segments[-1]["endMs"], folder)
        self.used[SESSION].append(used[:3])
        self.bytes[SESSION] = self.film.stat().st_size

    def likeness(self):
        """Returns the mean SSIM of each program's output; None if it lacks a frame."""
        def mean(places):
            return places and statistics.mean(similarity(self.segments, places, self.frames, self.scratch))

        files = [self.folder / segment["file"] for segment in self.segments]
        ours = [(file, our_places(segment, file)) for segment, file in zip(self.segments, files)]
        return {OURS: mean(ours), SEGMENT: mean(recipe_places(self.segments, self.parts)),
                SESSION: mean(film_places(self.segments, self.frames, self.film))}


def measure(worker, program, session, scratch, rounds):
    runs = Runs(worker, program, session, scratch)
    # limit.c decodes JPEG.
    bare = all(frame.suffix == ".jpg" for frame in runs.frames.values())
    for _ in range(rounds):
        for _ in range(CLOSE_ROUNDS):
            runs.ours()
            if bare:
                runs.bare()
            runs.by_session()
        runs.by_segment()
    likeness = runs.likeness()
    rows = {}
    for name, used in runs.used.items():
        if not used:
            continue
        cpu, memory, wall = zip(*used)
        rows[name] = {"cpu": min(cpu) * 1_000 / len(runs.frames), "wall": min(wall) * 1_000 / len(runs.frames),
                      "memory": statistics.median(memory), "bytes": runs.bytes[name] / len(runs.frames),
                      "ssim": likeness.get(name)}
    shutil.rmtree(scratch)
    return {"name": session.name, "kind": session.kind, "frames": len(runs.frames), "segments": len(runs.segments),
            "rows": rows}


def compare(worker, program, sessions, scratch, rounds):
    result = []
    for session in sessions:
        print(f"{session.kind} {session.name} …", file=sys.stderr)
        result.append(measure(worker, program, session, scratch / f"{session.kind} {session.name}", rounds))
    return result


def sandbox(worker, paths, scratch, rounds):
    """Measures the cost of decoding in a separate process: all sessions with and without it, in turn."""
    def encode(mode):
        output = scratch / f"sandbox-{mode}"
        spent = sum(run([worker, "encode", path / "jpg", "--session", path.name, "--output", output, "--jobs", "1",
                         "--sandbox", mode]).cpu for path in paths)
        shutil.rmtree(output)
        return spent

    spent = in_turn(SANDBOX_ROUNDS * rounds, {mode: partial(encode, mode) for mode in ("require", "off")})
    return ratios(spent["require"], spent["off"])
