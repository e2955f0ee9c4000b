#!/usr/bin/env python3
"""Whether our segments play in real time in a browser's plain <video>, measured in headless Chromium.

    make playback        installs chromium, writes Benchmarks/PLAYBACK.md

Each row is one segment of numbered pictures; the page plays it through and reports when `ended` came and when each
picture was first seen. Times are those of this machine and this run; they are shown, never asserted.
"""

import http.server
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURES = sorted((ROOT / "fixtures" / "exact-1fps").glob("*.jpg"))
START = 1_767_859_512_340

# name: captures and end, in milliseconds; each within one segment
ROWS = {
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
}

PAGE = """<!doctype html><video id="video" muted playsinline></video><script>
const files = FILES, video = document.getElementById('video');
function number(context, width, height) {
  let result = 0;
  for (let bit = 0; bit < 8; bit++) {
    const x = Math.floor(width * (2 * bit + 1) / 16), y = Math.floor(height * 3 / 8);
    if (context.getImageData(x, y, 1, 1).data[1] > 127) result |= 1 << bit;
  }
  return result;
}
async function play(file) {
  video.src = file;
  await new Promise(resolve => video.onloadeddata = resolve);
  const canvas = Object.assign(document.createElement('canvas'), {width: video.videoWidth, height: video.videoHeight});
  const context = canvas.getContext('2d', {willReadFrequently: true}), seen = {};
  let isPlaying = true;
  const ended = new Promise(resolve => { video.onended = () => resolve(performance.now()); setTimeout(resolve, 15000, -1); });
  await video.play();
  const start = performance.now();
  (function look() {
    if (!isPlaying) return;
    context.drawImage(video, 0, 0);
    const shown = number(context, canvas.width, canvas.height);
    if (!(shown in seen)) seen[shown] = Math.round(performance.now() - start);
    requestAnimationFrame(look);
  })();
  const end = await ended;
  isPlaying = false;
  return {ended: Math.round(end - start), seen};
}
(async () => {
  const results = {};
  for (const name of Object.keys(files)) results[name] = await play(files[name]);
  await fetch('/results', {method: 'POST', body: JSON.stringify(results)});
})();
</script>"""


def encode(worker, scratch):
    """One segment a row; their paths below scratch."""
    files = {}
    for index, (name, (captures, end)) in enumerate(ROWS.items()):
        folder = scratch / f"row{index}"
        folder.mkdir()
        frames = []
        for number, capture in enumerate(captures):
            shutil.copy(PICTURES[number], folder)
            frames.append({"file": PICTURES[number].name, "timeMs": START + capture})
        (folder / "batch.json").write_text(json.dumps(
            {"version": 1, "session": folder.name, "capture": "onChange", "intervalMs": 1000, "endMs": START + end,
             "frames": frames}))
        subprocess.run([worker, "encode", folder, "--output", scratch / "output"], check=True, stdout=subprocess.DEVNULL)
        files[name] = f"/output/{folder.name}/segment-{START}.mp4"
    return files


def measure(files, scratch):
    results, arrived = {}, threading.Event()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=scratch)

        def do_GET(self):
            if self.path != "/":
                return super().do_GET()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(PAGE.replace("FILES", json.dumps(files)).encode())

        def do_POST(self):
            results.update(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()
            arrived.set()

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = subprocess.Popen(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required",
         f"--user-data-dir={scratch / 'profile'}", f"http://127.0.0.1:{server.server_port}/"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if not arrived.wait(180):
            sys.exit("the browser did not answer within three minutes")
    finally:
        browser.kill()
        browser.wait()
        server.shutdown()
    return results


def table(results):
    lines = ["| segment | captures, end (ms) | `ended` after the end, ms | pictures seen | furthest from its capture, ms |",
             "|---|---|---|---|---|"]
    for name, (captures, end) in ROWS.items():
        seen = {int(number): at for number, at in results[name]["seen"].items()}
        errors = [seen[number] - capture for number, capture in enumerate(captures) if number in seen]
        lines.append(f"| {name} | {', '.join(map(str, captures))}; {end} | {results[name]['ended'] - end:+} | "
                     f"{len(errors)} of {len(captures)} | {max(errors, key=abs):+} |")
    return "\n".join(lines)


def main():
    path = subprocess.run(["swift", "build", "-c", "release", "--show-bin-path"], stdout=subprocess.PIPE, text=True,
                          check=True, cwd=ROOT).stdout.strip()
    scratch = Path(tempfile.mkdtemp())
    try:
        text = table(measure(encode(path + "/encoder-worker", scratch), scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    version = subprocess.run(["chromium", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[1]
    print(text)
    (ROOT / "Benchmarks" / "PLAYBACK.md").write_text(
        f"# Playing in real time\n\n`make playback`, {date.today()}, headless Chromium {version}, plain `<video>`. One segment a "
        "row, played through.\n\n" + text + "\n")


if __name__ == "__main__":
    main()
