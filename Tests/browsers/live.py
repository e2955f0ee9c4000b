#!/usr/bin/python3
"""Plays a session that is being recorded, in a browser, up to its end. Prints how late the player was, its stalls, and where it ended.

    HLS_JS=FILE ENCODER_WORKER=PROGRAM Tests/browsers/live.py [--native] [--ingest] [--browser Chromium] [--seconds 60] [--batch 4]

A producer hands in a batch every few seconds, as a recorder does: through the spool, or with --ingest over HTTP. Then it ends the
session, and hands in one more batch, late. --native gives the playlist to the browser itself; else hls.js plays it.
The exit status is 0 if the player reached the true end without a stall, and was never much later than two batches and the target
duration."""

import argparse
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from functools import partial
from pathlib import Path

import drivers

ROOT = Path(__file__).resolve().parents[2]
WORKER = os.environ.get("ENCODER_WORKER", str(ROOT / ".build/release/encoder-worker"))
PICTURES = sorted((ROOT / "fixtures" / "exact-1fps").glob("*.jpg"))
INGEST = "127.0.0.1:18481"

PAGE = """<!doctype html><video id=video muted width=300></video>%s<script>
const video = document.getElementById('video'), seen = {stalls: 0, latest: 0, ended: false, error: '', at: 0, started: 0};
window.seen = seen;
const live = () => !video.paused && !video.ended && seen.started;
video.addEventListener('playing', () => { seen.started = seen.started || Date.now(); });
video.addEventListener('waiting', () => { if (live()) seen.stalls += 1; });
video.addEventListener('ended', () => { seen.ended = true; seen.at = video.currentTime; });
video.addEventListener('error', () => { seen.error = String(video.error && video.error.message); });
%s
</script>"""

HLS_JS = """
const hls = new Hls({liveSyncDuration: %d, liveMaxLatencyDuration: 120});
hls.on(Hls.Events.ERROR, (_, {fatal, details}) => { if (fatal) seen.error = details; });
hls.loadSource('/s/hls/session.m3u8');
hls.attachMedia(video);
hls.on(Hls.Events.MANIFEST_PARSED, () => video.play());
setInterval(() => {
  const at = video.currentTime, details = hls.levels[Math.max(hls.currentLevel, 0)]?.details;
  const shown = details?.fragments.find(({start, duration}) => start <= at && at < start + duration);
  if (live() && shown?.programDateTime)
    seen.latest = Math.max(seen.latest, Date.now() - shown.programDateTime - 1000 * (at - shown.start));
}, 200);
"""
NATIVE = "video.src = '/s/hls/session.m3u8'; video.play();"


class Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".m3u8": "application/vnd.apple.mpegurl",
                      ".m4s": "video/iso.segment"}

    def log_message(self, *_):
        pass


def hand_in(spool, name, start_ms, count, ingest):
    """Hands in a batch of pictures, one a second."""
    frames = [(start_ms + 1000 * index, PICTURES[(start_ms // 1000 + index) % len(PICTURES)]) for index in range(count)]
    manifest = {"version": 1, "session": "s", "frames": [{"file": f"{ms}.jpg", "timeMs": ms} for ms, _ in frames]}
    draft = spool / "tmp" / name
    draft.mkdir()
    for ms, picture in frames:
        shutil.copy(picture, draft / f"{ms}.jpg")
    (draft / "batch.json").write_text(json.dumps(manifest))
    if not ingest:
        draft.rename(spool / "incoming" / name)
        return
    body = subprocess.run(["tar", "-C", draft, "-cf", "-", "."], check=True, capture_output=True).stdout
    shutil.rmtree(draft)
    request = urllib.request.Request(f"http://{INGEST}/v1/batches/{name}.tar", body, method="PUT",
                                     headers={"Content-Type": "application/x-tar"})
    assert urllib.request.urlopen(request).status == 201


def record(spool, seconds, length, ingest, late):
    """Records for some seconds, ends the session, and hands in a late batch."""
    count = seconds // length
    for number in range(count):
        start_ms = int(time.time() * 1000)
        time.sleep(length)
        hand_in(spool, f"s@{number}", start_ms, length, ingest)
    if ingest:
        request = urllib.request.Request(f"http://{INGEST}/v1/sessions/s/end", b"", method="POST")
        assert urllib.request.urlopen(request).status in (202, 204)
    else:
        subprocess.run([WORKER, "end", "s", "--spool", spool], check=True, capture_output=True)
    late["index"] = None
    while not late["index"]:
        time.sleep(0.5)
        index = json.loads((spool / "output/s/session.json").read_text())
        late["index"] = index if index["complete"] else None
    time.sleep(2)
    hand_in(spool, "s@late", int(time.time() * 1000), length, ingest)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--native", action="store_true")
    parser.add_argument("--ingest", action="store_true")
    parser.add_argument("--browser", default="Chromium")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--batch", type=int, default=4)
    options = parser.parse_args()
    library = os.environ.get("HLS_JS")
    if not options.native and not library:
        sys.exit("HLS_JS=FILE is missing: a copy of hls.js")
    with tempfile.TemporaryDirectory() as scratch:
        spool = Path(scratch) / "spool"
        words = [WORKER, "run", "--spool", spool, "--hls", "--json"] + (["--ingest", INGEST] if options.ingest else [])
        events = open(Path(scratch) / "events", "w+")
        worker = subprocess.Popen(words, stdout=events)
        while not (spool / "tmp").is_dir() or not (spool / "output").is_dir():
            time.sleep(0.1)
        output = spool / "output"
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=output))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        late = {}
        producer = threading.Thread(target=record, args=(spool, options.seconds, options.batch, options.ingest, late))
        producer.start()
        while not (output / "s/hls/session.m3u8").exists():
            time.sleep(0.1)
        if library:
            shutil.copy(library, output / "hls.js")
        # A batch until it is handed in, one that the last segment waits for, and the player's time between two looks at the
        # playlist: its target duration.
        behind = 2 * options.batch + 6 + 4
        source = NATIVE if options.native else HLS_JS % behind
        (output / "page.html").write_text(PAGE % ("" if options.native else "<script src='/hls.js'></script>", source))
        # A player that begins nearer to the end has to wait for each part.
        time.sleep(behind)
        browser = getattr(drivers, options.browser)()
        try:
            browser.open(f"http://127.0.0.1:{server.server_address[1]}/page.html")
            deadline = time.time() + options.seconds + 120
            while time.time() < deadline:
                seen = browser.run("return window.seen")
                if seen["ended"] or seen["error"]:
                    break
                time.sleep(0.5)
            producer.join()
            # A late batch reopens nothing: the player stays at its end.
            time.sleep(12)
            after = browser.run("return window.seen")
        finally:
            browser.close()
            worker.terminate()
            worker.wait()
        index, last = late["index"], json.loads((output / "s/session.json").read_text())
        events.seek(0)
        told = sum('"session.ended"' in line for line in events)
        true_s = index["durationMs"] / 1000
        facts = {"ended": seen["ended"], "error": seen["error"], "stalls": seen["stalls"], "endedAtS": round(seen["at"], 3),
                 "durationS": true_s, "latestS": round(seen["latest"] / 1000, 1), "stillEnded": after["ended"],
                 "toldOfTheEnd": told, "completeAfterLateBatch": last["complete"],
                 "lateFrames": last["frames"] - index["frames"]}
        print(json.dumps(facts))
        good = (seen["ended"] and not seen["error"] and seen["stalls"] == 0 and abs(seen["at"] - true_s) < 0.1
                and after["ended"] and told == 1 and last["complete"] and facts["lateFrames"] == options.batch
                and facts["latestS"] <= behind + 6)
        return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
