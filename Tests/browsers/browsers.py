#!/usr/bin/python3
"""Tests how browsers show the encoder's files, by screenshots: segments, films, animated pictures, HLS, the player page, colours.

    make browsers                                  installs three browsers, runs all parts and writes Benchmarks/BROWSERS.md
    make browsers BROWSERS=webkitgtk ONLY=idle     runs one part in one browser, and prints its rows

The exit status is 0 if all checks pass. ENCODER_WORKER names the program under test. PHOTOS=DIR adds photographs to the
colours. HLS_JS=FILE plays HLS through that copy of hls.js. CORPUS=DIR adds real sessions to the films without idle time:
each directory in it has its frames in `jpg/`."""

import argparse
import http.server
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from datetime import date
from functools import cached_property
from pathlib import Path

import drivers
from PIL import Image, ImageDraw, ImageOps

ROOT = Path(__file__).resolve().parents[2]
WORKER = os.environ.get("ENCODER_WORKER", str(ROOT / ".build/release/encoder-worker"))
START = 1_767_859_512_340
PICTURES = sorted((ROOT / "fixtures" / "exact-1fps").glob("*.jpg"))
TURNED = sorted((ROOT / "fixtures" / "rotation").glob("*.jpg"))

# Single segments by their special property: captures and end, in milliseconds.
SEGMENTS = {
    "regular": ([0, 1000, 2000, 3000, 4000], 5000),
    "jittered": ([0, 1012, 1987, 3020, 4013], 5000),
    "irregular": ([0, 1000, 2000, 3010, 4400], 5000),
    "one picture, 5 s": ([0], 5000),
    "one picture, 1 s": ([0], 1000),
    "a long hold inside": ([0, 1000, 4000], 5000),
    "a long hold first": ([0, 3000, 4000], 5000),
    "two halves": ([0, 2500], 5000),
    "a short end": ([0, 1000, 2000, 3000, 4000], 4200),
    "a very short end": ([0, 1000, 2000, 3000], 3040),
    "slow, short end": ([0, 1200, 2400], 2600),
    "mixed": ([0, 1000, 1500, 2500, 3000, 4000], 4400),
    "3 fps": ([0, 353, 710, 1024, 1347, 1670, 1993, 2378, 2697], 3030),
    "3 fps, pause": ([0, 353, 710, 1024, 1347, 1670, 1993, 2378, 3900], 4030),
    "3 fps, very short end": ([0, 333, 666, 999, 1332, 1665, 1998, 2331, 2664], 2694),
    "3 fps, a short one inside": ([0, 250, 650, 960, 1350, 1610, 1650], 1950),
    "a long segment of two": ([0, 20_000], 40_000),
    "a long segment of one": ([0], 30_000),
    "a long segment, uneven": ([0, 4_000, 5_500, 17_000], 25_000),
    "a long segment, a short end": ([0, 12_000], 12_400),
}


# MARK: Sessions

CLIPPED = ["regular-1", "irregular-2", "gap-1", "rotated-1", "seams-1"]


def batch(captures, end, pictures=PICTURES, first=0, **keys):
    """Returns a batch: its captures with their pictures, and further keys of its batch.json."""
    return [(ms, pictures[(first + index) % len(pictures)]) for index, ms in enumerate(captures)], end, keys


def sessions():
    """Returns sessions, each a list of batches: regular, jittered, irregular, idle, gaps, rotated, single frames, seams, fast, and
    one of long segments."""
    chance = random.Random(20)

    def paced(count, least, most):
        captures = [0]
        for _ in range(count - 1):
            captures.append(captures[-1] + chance.randint(least, most))
        return captures

    regular = [i * 1000 for i in range(12)]
    all = {
        "regular-1": [batch(regular, 12_000)],
        "regular-2": [batch([i * 500 for i in range(12)], 6_000)],
        "regular-3": [batch(regular[:5], 5_000), batch([5_000 + ms for ms in regular[:5]], 10_000, first=5)],
    }
    for number in (1, 2, 3):
        captures = paced(11, 950, 1_050)
        all[f"jittered-{number}"] = [batch(captures, captures[-1] + 1_000)]
    for number, (least, most) in enumerate([(300, 400), (150, 1_400), (600, 2_600)], start=1):
        captures = paced(11, least, most)
        all[f"irregular-{number}"] = [batch(captures, captures[-1] + least)]
    idle = [PICTURES[0]] * 7 + [PICTURES[1]] * 6 + [PICTURES[2]] * 2
    all["idle-1"] = [batch([i * 1000 for i in range(15)], 15_000, idle)]
    all["idle-2"] = [batch([0, 700, 13_200, 13_900], 14_600, capture="onChange", intervalMs=700)]
    # A picture stays over several segments, so the film has few key frames and repeats there.
    still = [PICTURES[0]] * 23 + [PICTURES[1]] * 5 + [PICTURES[2]] * 3
    all["idle-3"] = [batch([i * 1000 for i in range(31)], 31_000, still)]
    all["idle-4"] = [batch([0, 27_300, 28_100], 33_000, capture="onChange", intervalMs=700)]
    all["gap-1"] = [batch([0, 1_000, 2_000, 14_000, 15_000], 16_000)]
    all["gap-2"] = [batch([0, 1_010, 2_000], 3_000), batch([60_000, 61_000, 62_030], 63_000, first=3)]
    all["rotated-1"] = [batch(regular[:8], 8_000, TURNED)]
    all["rotated-2"] = [batch([0, 1_020, 1_990, 3_010, 4_000, 5_015, 6_000, 7_020], 8_000, TURNED)]
    all["single-1"] = [batch([0], 1_000)]
    all["single-2"] = [batch([0], 40)]
    all["seams-1"] = [batch([(5 * part + i) * 1_050 for i in range(5)], part * 5_250 + 5_200, first=5 * part)
                      for part in range(2)]
    all["seams-2"] = [batch([0, 1_000], 2_000), batch([2_300, 3_300], 4_300, first=2), batch([4_100, 5_100], 6_100, first=4)]
    all["seams-3"] = [batch([0], 1_000), batch([1_040], 2_040, first=1), batch([2_000, 3_000], 4_000, first=2)]
    captures = paced(30, 300, 370)
    all["fast-1"] = [batch(captures, captures[-1] + 340)]
    captures = [0, 9_000, 9_300, 18_000, 26_500, 27_000, 27_250, 36_000]
    all["long-1"] = [batch(captures, 44_500, capture="onChange")]
    return all


def encode(output, session, batches, *options):
    """Encodes batches as one session."""
    with tempfile.TemporaryDirectory() as scratch:
        paths = []
        for number, (frames, end, keys) in enumerate(batches):
            paths.append(path := Path(scratch) / f"batch-{number}")
            path.mkdir()
            listed = []
            for ms, picture in frames:
                name = f"{START + ms}{picture.suffix}"
                shutil.copy(picture, path / name)
                listed.append({"file": name, "timeMs": START + ms})
            manifest = {"version": 1, "session": session, "endMs": START + end, "frames": listed, **keys}
            (path / "batch.json").write_text(json.dumps(manifest))
        subprocess.run([WORKER, "encode", *paths, "--output", output, *options], check=True, capture_output=True)


def captures(output, session, batches):
    """Returns the expected captures: the picture's number, its start and its end, from the session's start."""
    frames = [(ms, picture) for frames, _, _ in batches for ms, picture in frames]
    spans = {}
    for path in sorted((Path(output) / session).glob("segment-*[0-9].json")):
        now = json.loads(path.read_text())["startMs"]
        for frame in json.loads(path.read_text())["frames"]:
            since = spans.get(frame["timeMs"], (now,))[0]
            now += frame["holdMs"]
            spans[frame["timeMs"]] = (since, now)
    return [(int(picture.stem), spans[START + ms][0] - START, spans[START + ms][1] - START) for ms, picture in frames]


def clips(output, spans, target):
    """Cuts random parts out of five sessions. Returns for each file its length, and its pictures with their starts."""
    chance = random.Random(40)
    found = {}
    target.mkdir()
    for session in CLIPPED:
        starts = [(number, since) for number, since, _ in spans[session]]
        end = json.loads((output / session / "session.json").read_text())["durationMs"]
        ends = [since for _, since in starts[1:]] + [end]
        for index in range(8):
            begin = chance.choice([chance.randrange(end - 400), max(0, chance.choice(starts)[1] + chance.randint(-1, 1))])
            begin = min(begin, end - 100)
            until = min(end, begin + chance.randint(100, 3_500))
            name = f"{session}-{index}.mp4"
            subprocess.run([WORKER, "stitch", output / session, "--to", target / name, "--from", str(START + begin),
                            "--to-time", str(START + until)], check=True, capture_output=True)
            found[name] = until - begin, [(number, max(0, since - begin)) for (number, since), last in zip(starts, ends)
                                          if since < until and last > begin]
    return found


# The fixtures that are sessions. Two of them have no numbers in their pictures, or masks over them.
FIXTURES = ["exact-1fps", "jittered", "gap", "rotation", "odd-size", "corrupt-frames", "single-frame", "irregular-3fps",
            "on-change", "masks", "colour-bars"]
UNNUMBERED = {"masks", "colour-bars"}
IDLE_RULES = ["cut", "cut=400", "speed=4"]


def painted(picture):
    """Reads the painted number from a source picture."""
    image = ImageOps.exif_transpose(Image.open(picture)).convert("RGB")
    return sum((image.getpixel((image.width * (2 * bit + 1) // 16, image.height * 3 // 8))[1] > 127) << bit for bit in range(8))


def idle_films(output, spans, target):
    """Makes films without idle time: of the generated sessions, of fixtures, and of CORPUS. Returns for each file its length, and
    its pictures with their first instant and their time on screen, or nothing for pictures without numbers."""
    target.mkdir()
    folders = {name: ROOT / "fixtures" / name for name in FIXTURES}
    if corpus := os.environ.get("CORPUS"):
        folders |= {path.parent.name: path for path in sorted(Path(corpus).glob("*/jpg"))}
    known = {name: spans[name] for name in [*CLIPPED, "idle-1", "idle-2"]}
    for name, folder in folders.items():
        subprocess.run([WORKER, "encode", folder, "--output", target / "sessions", "--session", name], check=True,
                       capture_output=True)
        numbers = name in FIXTURES and name not in UNNUMBERED
        known[name] = fixture_captures(target / "sessions" / name, folder) if numbers else []
    found = {}
    for name, captures in known.items():
        session = (output if name in spans else target / "sessions") / name
        for rule in IDLE_RULES:
            file = f"{name}-{rule}.mp4"
            subprocess.run([WORKER, "stitch", session, "--to", target / file, "--idle", rule, "--map", target / f"{file}.json"],
                           check=True, capture_output=True)
            film = json.loads((target / f"{file}.json").read_text())
            found[file] = film["durationMs"], visible(captures, film["pieces"])
    return found


def fixture_captures(session, folder):
    """Returns the captures of a published fixture: the picture's number, its start and its end, from the common start."""
    found = []
    for path in sorted(session.glob("segment-*[0-9].json")):
        manifest = json.loads(path.read_text())
        now = manifest["startMs"]
        for frame in manifest["frames"]:
            if frame["status"] == "captured":
                found.append((painted(folder / frame["source"]), now - START, now - START))
            now += frame["holdMs"]
            found[-1] = (*found[-1][:2], now - START)
    return found


def visible(captures, pieces):
    """Returns the pictures of a film: the number, the film's time at which it appears, and its time on screen."""
    found = {}
    for number, since, until in captures:
        for piece in pieces:
            begin, end = max(since, piece["unixMs"] - START), min(until, piece["unixEndMs"] - START)
            if begin >= end:
                continue
            pace = (piece["filmEndMs"] - piece["filmMs"]) / (piece["unixEndMs"] - piece["unixMs"])
            at, shown = found.get(number, (piece["filmMs"] + (begin + START - piece["unixMs"]) * pace, 0))
            found[number] = at, shown + (end - begin) * pace
    return [(number, at, shown) for number, (at, shown) in found.items()]


# One of each kind: several batches, irregular, idle, a gap, several sizes.
ARCHIVED = ["regular-3", "irregular-1", "irregular-2", "idle-1", "gap-1", "rotated-1", "seams-2"]


def archives(output, target, films):
    """Makes archives of sessions, and their films."""
    films.mkdir()
    for name in ARCHIVED:
        subprocess.run([WORKER, "reencode", output / name, "--output", target, "--quality", "archive"], check=True, capture_output=True)
        subprocess.run([WORKER, "stitch", target / name, "--to", films / f"{name}.mp4"], check=True, capture_output=True)


# MARK: Pages

class Server(http.server.ThreadingHTTPServer):
    """Serves a directory with byte ranges, which films need."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            path = Path(self.directory) / self.path.split("?")[0].lstrip("/")
            if not path.is_file():
                return self.send_error(404)
            data = path.read_bytes()
            asked = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
            first, last = (int(asked[1]), int(asked[2] or len(data) - 1)) if asked else (0, len(data) - 1)
            part = data[first:last + 1]
            self.send_response(206 if asked else 200)
            if asked:
                self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(data)}")
            kinds = {".mp4": "video/mp4", ".m4s": "video/mp4", ".m3u8": "application/vnd.apple.mpegurl",
                     ".js": "text/javascript", ".html": "text/html", ".gif": "image/gif", ".webp": "image/webp"}
            self.send_header("Content-Type", kinds.get(path.suffix, "application/octet-stream"))
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            try:
                self.wfile.write(part)
            except OSError:
                pass  # the browser closed the connection: it has enough bytes

    def __init__(self, directory):
        super().__init__(("127.0.0.1", 0), lambda *given: self.Handler(*given, directory=directory))
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


PLAIN = '<!doctype html><body style="margin:0;background:#808080"><video id="video" muted playsinline preload="auto"></video>'
LOAD = """
    const [source, done] = arguments, video = document.getElementById('video');
    video.onerror = () => done(`error: ${video.error?.message}`);
    video.oncanplay = () => (video.oncanplay = null, done('ok'));
    setTimeout(() => done('never ready'), 10000);
    video.src = source;"""
SEEK = """
    const [seconds, done] = arguments, video = document.getElementById('video');
    video.onseeked = () => setTimeout(() => done('ok'), 150);
    setTimeout(() => done('never there'), 5000);
    video.currentTime = seconds;"""
# The media time of each presented sample and when it came on screen by the clock of the video, and the end, in milliseconds, in
# `window.played`. Reading the pixels would disturb Chromium: it shows pictures early and late then.
PLAY = """
    const [file] = arguments, video = document.getElementById('video');
    const frames = [], clocks = [];
    let start;
    video.requestVideoFrameCallback(function note(_, {mediaTime, expectedDisplayTime}) {
      if (!video.paused) clocks.push(performance.now() - 1000 * video.currentTime);
      frames.push([1000 * mediaTime, expectedDisplayTime]);
      video.requestVideoFrameCallback(note);
    });
    video.onended = () => {
      const zero = clocks.sort((one, other) => one - other)[clocks.length >> 1] ?? start;
      const shown = frames.map(([time, at]) => [time, Math.round(at - zero)]);
      window.played = {ended: Math.round(performance.now() - start), shown, lengthMs: video.duration * 1000};
    };
    video.oncanplay = async () => {
      video.oncanplay = null;
      start = performance.now();
      await video.play();
    };
    video.onerror = () => window.played = {ended: -1, shown: [], error: String(video.error?.message)};
    video.src = file;"""
# A picture that comes earlier than this, in milliseconds, is a fault of the file. Late ones may be the machine's fault.
EARLIEST = 100
# Each film is played this often, and each play counts.
PLAYS = 2


def play(browser, server, file, length, starts):
    """Plays a file of some milliseconds. Returns when it ended (-1 if it did not), and when each picture was shown first; `starts`
    has their times in the file, in order."""
    browser.open(f"{server.url}/plain.html")
    browser.run(PLAY, file)
    deadline = time.monotonic() + 2 * length / 1000 + 30
    while not (played := browser.run("return window.played")) and time.monotonic() < deadline:
        time.sleep(0.2)
    at = browser.run("return document.getElementById('video').currentTime")
    played = played or {"ended": -1, "shown": [], "error": f"stays at {at} s"}
    played["seen"] = {}
    for index, (since, until) in enumerate(zip(starts, [*starts[1:], length])):
        # Media times may be rounded by a millisecond.
        first = next((shown for media, shown in played["shown"] if since - 1 <= media < max(until - 1, since + 1)), None)
        if first is not None:
            played["seen"][index] = first
    return played


def number(browser, selector="video, img"):
    """Reads the painted number from a screenshot of the picture."""
    box = browser.run("""
        const {left, top, width, height} = document.querySelector(arguments[0]).getBoundingClientRect();
        return [left, top, width, height];""", selector)
    left, top, width, height = box
    picture = browser.screenshot()
    result = 0
    for bit in range(8):
        x, y = left + width * (2 * bit + 1) / 16, top + height * 3 / 8
        if not (0 <= x < picture.width and 0 <= y < picture.height):
            return -1
        if picture.getpixel((int(x), int(y)))[1] > 127:
            result |= 1 << bit
    return result


# MARK: Parts

def check_segments(browser, files, server):
    """Plays single segments. Returns those that show every picture and end in time."""
    good, bad = 0, []
    for name, (frames, end) in SEGMENTS.items():
        result = play(browser, server, f"segments/{files[name]}", end, frames)
        # An early end or a lost picture is a fault of the file's timing. A late end may be the machine's fault.
        if result["ended"] >= end - 150 and len(result["seen"]) == len(frames):
            good += 1
        else:
            bad.append(f"{name}: ended at {result['ended']} of {end} ms, {len(result['seen'])} of {len(frames)} pictures seen")
    return good, len(SEGMENTS), bad


def check_films(browser, films, server, folder="films"):
    """Seeks in paused films. The picture on screen must be the capture of that time."""
    good, count, bad = 0, 0, []
    for session, spans in films.items():
        browser.open(f"{server.url}/plain.html")
        loaded = browser.run_async(LOAD, f"{folder}/{session}.mp4")
        # A screenshot distinguishes numbers only where pictures differ.
        for picture, since, until in spans[::max(1, len(spans) // 8)][:8]:
            count += 1
            state = loaded if loaded != "ok" else browser.run_async(SEEK, (since + until) / 2000)
            shown = number(browser) if state == "ok" else state
            if shown == picture:
                good += 1
            else:
                bad.append(f"{session} at {(since + until) // 2} ms: {shown} instead of {picture}")
    return good, count, bad


def animations(output, target):
    """Makes animated pictures of a session. Returns the numbers of its pictures for each file."""
    target.mkdir()
    found = {}
    for ending in ["gif", "webp"]:
        subprocess.run([WORKER, "stitch", output / "regular-1", "--to", target / f"regular.{ending}"], check=True,
                       capture_output=True)
        (target / f"{ending}.html").write_text(
            f'<!doctype html><body style="margin:0;background:#808080"><img src="regular.{ending}">')
        found[ending] = {frame[0] for frame in captures(output, "regular-1", sessions()["regular-1"])}
    return found


def check_animations(browser, animations, server):
    """Looks at animated pictures until each picture was on screen."""
    good, bad = 0, []
    for ending, numbers in animations.items():
        browser.open(f"{server.url}/animations/{ending}.html")
        seen, until = set(), time.monotonic() + 60
        while not numbers <= seen and time.monotonic() < until:
            seen.add(number(browser))
        if numbers <= seen:
            good += 1
        else:
            bad.append(f"{ending}: {sorted(numbers - seen)} not seen")
    return good, len(animations), bad


def check_clips(browser, clips, server):
    """Loads clips. Returns those that show their first picture and tell their length."""
    opened, bad = 0, []
    for name, (length, pictures) in clips.items():
        browser.open(f"{server.url}/plain.html")
        state, shown = browser.run_async(LOAD, f"clips/{name}"), None
        # A browser may paint the first picture after it says that it can play; WebKitGTK may wait for a seek.
        for attempt in range(4):
            if attempt == 2:
                browser.run_async(SEEK, length / 2000)
                browser.run_async(SEEK, 0)
            if state == "ok" and (shown := number(browser)) == pictures[0][0]:
                break
            time.sleep(0.3)
        duration = browser.run("return document.getElementById('video').duration") if state == "ok" else 0
        if state == "ok" and shown == pictures[0][0] and abs(duration * 1000 - length) < 0.5:
            opened += 1
        else:
            bad.append(f"{name}: {state}, shows {shown} instead of {pictures[0][0]}, {duration} s of {length} ms")
    return opened, len(clips), bad


def check_plays(browser, films, server, folder):
    """Plays films to their end. Returns the good plays: they tell the film's length, end in time, and show every picture, none too
    early. An early picture, an early end and a wrong length are faults; on a busy machine a browser may leave pictures out."""
    good, bad = 0, []
    for name, (length, pictures) in films.items():
        for _ in range(PLAYS):
            result = play(browser, server, f"{folder}/{name}", length, [at for _, at, _ in pictures])
            needed = {index for index, (_, _, shown) in enumerate(pictures) if index and shown >= 100}
            early = {index: at for index, at in result["seen"].items() if index and at < pictures[index][1] - EARLIEST}
            # WebKitGTK ends a film without a timing track, of one picture in a gap, with the beginning of its last repeat.
            end = length - (250 if len(pictures) == 1 else 150)
            is_sound = result["ended"] >= end and abs(result["lengthMs"] - length) < 1 and not early
            missed = needed - set(result["seen"])
            good += is_sound and not missed
            if not is_sound:
                bad.append(f"{name}: {result} of {length} ms, {pictures}, too early: {early}")
            elif missed:
                note(browser, [f"{name}: pictures {sorted(missed)} are not shown"])
    return good, PLAYS * len(films), bad


def settled(browser, index):
    """Waits until the player page reports a capture, with its picture or with a missing one. Returns both."""
    deadline = time.monotonic() + 12
    state = []
    while time.monotonic() < deadline:
        state = browser.run("const {picture, frame} = document.documentElement.dataset; return [picture, frame]")
        if state[0] not in (None, "loading") and state[1] == str(index):
            break
        time.sleep(0.05)
    time.sleep(0.1)
    return state


def jump(browser, ms):
    """Jumps on the player page to an instant in unix milliseconds."""
    browser.run("""
        const input = document.getElementById('jump-time');
        input.value = new Date(arguments[0] - new Date(arguments[0]).getTimezoneOffset() * 60000).toISOString().slice(0, 23);
        input.form.requestSubmit();
        document.activeElement.blur();""", ms)


def check_opens(browser, spans, url):
    """Opens links to instants within captures, and jumps to such instants. Returns how many show their capture."""
    chance = random.Random(65)
    good, count, bad = 0, 0, []

    def judge(what, session, index):
        nonlocal good, count
        count += 1
        state, _ = settled(browser, index)
        # The page may show the picture before it is painted.
        time.sleep(0.2)
        shown = number(browser) if state == "ready" else state
        if shown == spans[session][index][0]:
            good += 1
        else:
            bad.append(f"{session}, {what}: {shown} instead of {spans[session][index][0]}")

    for session in ("irregular-1", "irregular-2", "gap-1", "fast-1", "long-1"):
        captures = spans[session]
        for index in chance.sample(range(len(captures)), 5):
            _, since, until = captures[index]
            for at in (since + 5, (since + until) // 2, until - 30):
                # A link to another instant of the same page would be a jump.
                browser.open("about:blank")
                browser.open(f"{url}/sessions/{session}/#t={START + at}")
                judge(f"link to {at} ms", session, index)
        for index in chance.choices(range(len(captures)), k=8):
            at = chance.randrange(*captures[index][1:])
            jump(browser, START + at)
            judge(f"jump to {at} ms", session, index)
    return good, count, bad


def check_page(browser, spans, url):
    """Opens each session on the player page and steps through it."""
    loads, steps, count, most, bad = 0, 0, 0, 0, []
    for session, captures in spans.items():
        browser.open(f"{url}/sessions/{session}/")
        state, frame = settled(browser, 0)
        if state == "ready" and number(browser) == captures[0][0]:
            loads += 1
        else:
            bad.append(f"{session}: {state} after loading")
        for index, (picture, _, _) in enumerate(captures[1:], start=1):
            browser.run("""document.activeElement.dispatchEvent(
                new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true, cancelable: true}));""")
            count += 1
            state, frame = settled(browser, index)
            shown = number(browser) if state == "ready" else state
            if shown == picture and frame == str(index):
                steps += 1
            else:
                bad.append(f"{session}, frame {index}: {shown} instead of {picture}, the page says {state} of {frame}")
        most = max(most, browser.run("""
            const fetches = {};
            for (const {name} of performance.getEntriesByType('resource')) {
              if (/\\.(m4s|mp4)$/.test(name)) fetches[name] = (fetches[name] ?? 0) + 1;
            }
            return Math.max(0, ...Object.values(fetches));"""))
    return loads, len(spans), steps, count, most, bad


def check_controls(browser, spans, url):
    """Uses the preview and the jump of the player page, and steps through two sessions side by side."""
    good, count, bad = 0, 0, []

    def when(condition):
        """Waits until a JavaScript expression is true. Returns whether it is."""
        deadline = time.monotonic() + 12
        while not (held := browser.run(f"return Boolean({condition})")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.1)
        return held

    def judge(what, is_good):
        nonlocal good, count
        count += 1
        good += is_good
        if not is_good:
            bad.append(what)

    first, other = "regular-1", "jittered-1"
    ready = "document.documentElement.dataset.picture === 'ready'"
    browser.open(f"{url}/sessions/{first}/")
    when(ready)
    browser.run("""
        const map = document.getElementById('map');
        const {left, top, width} = map.getBoundingClientRect();
        map.dispatchEvent(new PointerEvent('pointermove', {bubbles: true, clientX: left + width / 2, clientY: top + 40}));""")
    judge("no preview", when("!document.getElementById('preview').hidden"))
    for index in (2, 7, 11):
        jump(browser, START + spans[first][index][1] + 10)
        held = when(f"{ready} && document.documentElement.dataset.frame === '{index}'")
        judge(f"the jump to frame {index}", held and number(browser) == spans[first][index][0])
    browser.open(f"{url}/compare?a={first}&b={other}")
    panes = "[...document.querySelectorAll('.pane')]"
    shown = f"{panes}.length === 2 && {panes}.every(pane => pane.dataset.picture === 'ready')"
    when(shown)
    for step in range(12):
        browser.run("""document.activeElement.dispatchEvent(
            new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true, cancelable: true}));""")
        time.sleep(0.1)
        held = when(shown)
        frames = browser.run(f"return {panes}.map(pane => Number(pane.dataset.frame))")
        seen = [number(browser, f".pane:nth-child({pane}) video") for pane in (1, 2)]
        wanted = [spans[session][frame][0] for session, frame in zip((first, other), frames)]
        judge(f"step {step + 1} side by side: {seen} instead of {wanted}", held and seen == wanted)
    return good, count, bad


def check_colours(browser, pictures, server):
    """Shows pictures as films and compares the screenshots with them: the mean error, and the error of black and of
    white."""
    rows = {}
    for name in pictures:
        browser.open(f"{server.url}/plain.html")
        if browser.run_async(LOAD, f"colours/{name}.mp4") != "ok":
            rows[name] = (255.0, 255)
            continue
        browser.run_async(SEEK, 0.1)
        wanted = Image.open(Path(server.directory) / "colours" / f"{name.removesuffix('-stock')}.png").convert("RGB")
        shown = browser.screenshot().crop((0, 0, wanted.width, wanted.height))
        one, other = wanted.tobytes(), shown.tobytes()
        mean = sum(map(abs, (a - b for a, b in zip(one, other)))) / len(one)
        # Compares inside flat black and white: at edges, half-resolution chroma bleeds.
        extremes = [abs(a - b) for place in BLACK_AND_WHITE for a, b in zip(wanted.getpixel(place), shown.getpixel(place))]
        rows[name] = (mean, max(extremes) if name.startswith("bars") else 0)
    return rows


BARS = ["#000000", "#ffffff", "#808080", "#ff0000", "#00ff00", "#0000ff", "#00ffff", "#ff00ff", "#ffff00", "#c29682",
        "#1a73e8", "#202124"]
BLACK_AND_WHITE = [(20, 100), (60, 100)]


def colour_files(scratch):
    """Returns one-picture films of colour bars, and of photographs if there are any."""
    directory = Path(scratch) / "colours"
    directory.mkdir()
    bars = Image.new("RGB", (40 * len(BARS), 240))
    for index, colour in enumerate(BARS):
        ImageDraw.Draw(bars).rectangle((40 * index, 0, 40 * index + 39, 239), fill=colour)
    bars.save(directory / "bars.png")
    photos = sorted(Path(os.environ["PHOTOS"]).glob("**/*.jpg")) if os.environ.get("PHOTOS") else []
    for index, path in enumerate(photos[::max(1, len(photos) // 10)][:10]):
        photo = Image.open(path).convert("RGB")
        photo.crop((0, 0, min(photo.width, 720) // 2 * 2, min(photo.height, 600) // 2 * 2)).save(directory / f"photo-{index}.png")
    names = [path.stem for path in sorted(directory.glob("*.png"))]
    for name in names:
        frame = directory / f"{name}.png"
        encode(directory / "sessions", name, [([(0, frame)], 5_000, {})], "--quality", "sharp")
        segment = next((directory / "sessions" / name).glob("segment-*.mp4"))
        shutil.copy(segment, directory / f"{name}.mp4")
    # The same bars from stock ffmpeg show the browser's own error.
    subprocess.run(["ffmpeg", "-v", "error", "-loop", "1", "-t", "2", "-i", directory / "bars.png", "-vf",
                    "scale=out_color_matrix=bt601:out_range=tv,format=yuv420p", "-r", "1", "-c:v", "libx264", "-crf", "1",
                    "-colorspace", "smpte170m", "-color_primaries", "bt709", "-color_trc", "iec61966-2-1", "-color_range", "tv",
                    directory / "bars-stock.mp4"], check=True)
    return names + ["bars-stock"]


class Material:
    """The files that the parts show. Each is made when a part asks for it first."""

    def __init__(self, scratch):
        self.scratch = scratch
        (scratch / "plain.html").write_text(PLAIN)
        self.server = Server(scratch)
        self.server.directory = scratch
        self.sites = []

    @cached_property
    def segments(self):
        """The files of SEGMENTS by their names."""
        (self.scratch / "segments").mkdir()
        files = {}
        for index, (name, (frames, end)) in enumerate(SEGMENTS.items()):
            long = ["--segment", "60", "--capture", "onChange"] if name.startswith("a long segment") else []
            encode(self.scratch / "single", f"s{index}", [batch(frames, end, intervalMs=1_000)], *long)
            files[name] = f"s{index}.mp4"
            shutil.copy(next((self.scratch / "single" / f"s{index}").glob("segment-*.mp4")), self.scratch / "segments" / files[name])
        return files

    @cached_property
    def spans(self):
        """The captures of each session, with its film."""
        (self.scratch / "films").mkdir()
        spans = {}
        for session, batches in sessions().items():
            for part in batches:
                encode(self.scratch / "output", session, [part], *(["--segment", "60"] if session == "long-1" else []))
            spans[session] = captures(self.scratch / "output", session, batches)
            subprocess.run([WORKER, "stitch", self.scratch / "output" / session, "--to", self.scratch / "films" / f"{session}.mp4"],
                           check=True, capture_output=True)
        return spans

    @cached_property
    def clips(self):
        return clips(self.scratch / "output", self.spans, self.scratch / "clips")

    @cached_property
    def idle(self):
        return idle_films(self.scratch / "output", self.spans, self.scratch / "idle")

    @cached_property
    def archives(self):
        """The captures of the archives, and the address of `serve` for them."""
        spans = {name: self.spans[name] for name in ARCHIVED}
        archives(self.scratch / "output", self.scratch / "archives", self.scratch / "archived")
        return spans, self.serve(self.scratch / "archives")

    @cached_property
    def animations(self):
        assert self.spans
        return animations(self.scratch / "output", self.scratch / "animations")

    @cached_property
    def colours(self):
        return colour_files(self.scratch)

    @cached_property
    def site(self):
        """The address of `serve` for the sessions."""
        assert self.spans
        return self.serve(self.scratch / "output")

    def serve(self, folder):
        self.sites.append(subprocess.Popen([WORKER, "serve", folder, "--listen", "127.0.0.1:0"], text=True, stdout=subprocess.PIPE))
        return self.sites[-1].stdout.readline().strip().rstrip("/")

    def close(self):
        for site in self.sites:
            site.kill()
            site.wait()


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("browsers", nargs="*", metavar="BROWSER", help=f"of {', '.join(drivers.ALL)} (default: all)")
    arguments.add_argument("--only", action="append", choices=PARTS, help="run this part alone; repeatable (default: all)")
    arguments.add_argument("--page", type=Path, help="the Markdown file to write the table of all parts to")
    asked = arguments.parse_args()
    if asked.only and asked.page:
        arguments.error("--page needs all parts: leave out --only")
    asked.browsers = asked.browsers or list(drivers.ALL)
    if unknown := set(asked.browsers) - set(drivers.ALL):
        arguments.error(f"unknown browser {unknown.pop()}; there are {', '.join(drivers.ALL)}")
    if "webkitgtk" in asked.browsers:
        drivers.with_display([sys.executable, *sys.argv])
    with tempfile.TemporaryDirectory() as scratch:
        return report(asked, Path(scratch))


def report(asked, scratch):
    material = Material(scratch)
    columns, is_good = [], True
    try:
        for name in asked.browsers:
            print(f"{name} …", file=sys.stderr)
            browser = drivers.ALL[name]()
            try:
                column, faults = judge(browser, material, asked.only or PARTS)
            finally:
                browser.close()
            columns.append(column)
            is_good = is_good and not faults
            for fault in faults:
                print(f"{name}: {fault}", file=sys.stderr)
    finally:
        material.close()
    text = table(columns)
    print(text)
    if asked.page:
        page = asked.page.read_text() if asked.page.exists() else ""
        before = page.split("<!-- measured -->")[0] if "<!-- measured -->" in page else page
        asked.page.write_text(f"{before}<!-- measured -->\n\nMeasured on {date.today()} by `make browsers`:\n\n{text}")
        print(f"written to {asked.page}", file=sys.stderr)
    return 0 if is_good else 1


def judge(browser, material, parts):
    """Runs parts in one browser. Returns the rows of its column, and the failures."""
    column, faults = {"": f"{browser.name} {browser.version}"}, []
    for part in PARTS:
        if part in parts:
            rows, bad = PARTS[part](browser, material)
            column |= rows
            faults += bad
    return column, faults


def note(browser, texts):
    """Prints differences that players are known for."""
    for text in texts:
        print(f"{browser.name}: {text}", file=sys.stderr)


def judge_segments(browser, material):
    good, count, bad = check_segments(browser, material.segments, material.server)
    note(browser, bad)
    return {"Single segments play in real time, every picture seen": f"{good} of {count}"}, []


def judge_films(browser, material):
    good, count, bad = check_films(browser, material.spans, material.server)
    note(browser, bad)
    whole = {}
    for name, spans in material.spans.items():
        length = spans[-1][2]
        whole[f"{name}.mp4"] = length, visible(spans, [{"unixMs": START, "unixEndMs": START + length, "filmMs": 0, "filmEndMs": length}])
    played, films, faults = check_plays(browser, whole, material.server, "films")
    return {"Paused seeks in films show the capture": f"{good} of {count}",
            "Plays of films to their end, every picture seen, none early": f"{played} of {films}"}, faults


def judge_clips(browser, material):
    opened, count, bad = check_clips(browser, material.clips, material.server)
    films = {}
    for name, (length, pictures) in material.clips.items():
        ends = [since for _, since in pictures[1:]] + [length]
        films[name] = length, [(number, since, end - since) for (number, since), end in zip(pictures, ends)]
    played, plays, faults = check_plays(browser, films, material.server, "clips")
    return {"Clips show their first picture, and tell their length": f"{opened} of {count}",
            "Plays of clips, the same": f"{played} of {plays}"}, bad + faults


def judge_idle(browser, material):
    good, count, bad = check_plays(browser, material.idle, material.server, "idle")
    return {"Plays of films without idle time, the same": f"{good} of {count}"}, bad


def judge_archives(browser, material):
    spans, site = material.archives
    films = {}
    for name, captures in spans.items():
        length = captures[-1][2]
        whole = {"filmMs": 0, "filmEndMs": length, "unixMs": START, "unixEndMs": START + length}
        films[f"{name}.mp4"] = length, visible(captures, [whole])
    played, tried, bad = check_plays(browser, films, material.server, "archived")
    good, seeks, missed = check_films(browser, spans, material.server, "archived")
    loads, sessions, steps, count, _, lost = check_page(browser, spans, site)
    note(browser, [f"archive: {text}" for text in missed])
    return {"Plays of films of archives, the same": f"{played} of {tried}",
            "Paused seeks in archives show the capture": f"{good} of {seeks}",
            "Player page: archives that load": f"{loads} of {sessions}",
            "Player page: steps in archives that show the capture": f"{steps} of {count}"}, [f"archive: {text}" for text in bad + lost]


def judge_animations(browser, material):
    good, count, bad = check_animations(browser, material.animations, material.server)
    return {"GIF and WebP show each picture": f"{good} of {count}"}, bad


def judge_hls(browser, material):
    assert material.spans
    return {"HLS through hls.js: sessions that play to their end": check_hls(browser, material.server)}, []


def judge_page(browser, material):
    loads, sessions, steps, count, most, bad = check_page(browser, material.spans, material.site)
    return {"Player page: sessions that load": f"{loads} of {sessions}",
            "Player page: steps that show the capture": f"{steps} of {count}",
            "Player page: most fetches of a file": str(most)}, bad + ([f"{most} fetches of a file"] if most > 3 else [])


def judge_opens(browser, material):
    good, count, bad = check_opens(browser, material.spans, material.site)
    return {"Player page: links and jumps into captures that show them": f"{good} of {count}"}, bad


def judge_controls(browser, material):
    good, count, bad = check_controls(browser, material.spans, material.site)
    return {"Preview, jumps, and steps of two sessions side by side": f"{good} of {count}"}, bad


def judge_colours(browser, material):
    errors = check_colours(browser, material.colours, material.server)
    limit = 3 if browser.name == "WebKitGTK" else 2
    stock = errors.pop("bars-stock")
    photos = [mean for name, (mean, _) in errors.items() if name != "bars"]
    rows = {"Colour bars: mean error of 255, and of ffmpeg's own file": f"{errors['bars'][0]:.2f}, {stock[0]:.2f}",
            "Black and white: largest error, and of ffmpeg's own file": f"{errors['bars'][1]}, {stock[1]}",
            "Photographs: mean error, and of the worst": f"{statistics.mean(photos):.2f}, {max(photos):.2f}" if photos else "–"}
    faults = [f"{name}: mean error {mean:.2f}" for name, (mean, _) in errors.items() if mean > limit]
    if errors["bars"][1] > stock[1]:
        faults.append(f"black or white is off by {errors['bars'][1]}, in a file of stock ffmpeg by {stock[1]}")
    return rows, faults


def check_hls(browser, server):
    """Plays a stitched HLS stream through hls.js, if HLS_JS names a copy."""
    library = os.environ.get("HLS_JS")
    if not library:
        return "not tried: no hls.js here"
    shutil.copy(library, Path(server.directory) / "hls.js")
    good = 0
    sessions = ["regular-1", "jittered-1", "rotated-1", "seams-1"]
    for session in sessions:
        target = Path(server.directory) / "hls" / session
        subprocess.run([WORKER, "stitch", Path(server.directory) / "output" / session, "--to", target, "--format", "hls"],
                       check=True, capture_output=True)
        (target / "page.html").write_text(f"{PLAIN}<script src='/hls.js'></script>")
        browser.open(f"{server.url}/hls/{session}/page.html")
        good += browser.run_async("""
            const done = arguments[0], video = document.getElementById('video'), hls = new Hls();
            hls.on(Hls.Events.ERROR, (_, {fatal}) => fatal && done(false));
            setTimeout(() => done(false), 30000);
            video.onended = () => done(true);
            video.oncanplay = () => (video.oncanplay = null, video.playbackRate = 2, video.play());
            hls.loadSource('session.m3u8');
            hls.attachMedia(video);""")
    return f"{good} of {len(sessions)}"


def table(columns):
    lines = []
    for index, key in enumerate(columns[0]):
        lines.append(f"| {key} | " + " | ".join(column[key] for column in columns) + " |")
        if index == 0:
            lines.append("|---|" + "---|" * len(columns))
    return "\n".join(lines) + "\n"


# The parts by their names for --only, in the order of the table.
PARTS = {"segments": judge_segments, "films": judge_films, "clips": judge_clips, "idle": judge_idle, "archives": judge_archives,
         "animations": judge_animations, "hls": judge_hls, "page": judge_page, "opens": judge_opens, "controls": judge_controls, "colours": judge_colours}

if __name__ == "__main__":
    sys.exit(main())
