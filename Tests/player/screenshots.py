#!/usr/bin/python3
"""Takes the screenshots of both pages for the documentation: screenshots.py DIRECTORY"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote_plus

from PIL import Image

import browser

# The session, and the position of the playhead.
PLAYER = ("checkout", "#t=1767859529340")
# The words that the list is searched for.
WORDS = "brown frame"


def sessions(output):
    """Encodes batches of the fixtures as one session, and some more sessions for the list."""
    browser.encode(output, "exact-1fps", "jittered", "gap", "rotation", "irregular-3fps", "on-change", "corrupt-frames")
    start = 0
    for name, length in [("exact-1fps", 12_000), ("rotation", 12_500), ("irregular-3fps", 9_000), ("corrupt-frames", 0)]:
        with tempfile.TemporaryDirectory() as batch:
            for number, path in enumerate(sorted((browser.ROOT / "fixtures" / name).glob("*.jpg"))):
                instant = int(path.stem) if len(path.stem) == 13 else 1_767_859_512_340 + 1_000 * number
                shutil.copy(path, f"{batch}/{instant + start}.jpg")
            browser.encode_batch(output, batch, "checkout")
        start += length
    subprocess.run([browser.WORKER, "text", output], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def take(driver, path):
    # Waits for two animation frames: then the browser has painted the last change.
    driver.run("return new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
    driver.driver.save_screenshot(path)
    Image.open(path).convert("RGB").save(path, optimize=True)


def main(directory):
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "output"
        output.mkdir()
        sessions(output)
        serving = browser.Serving(output)
        for name, options in [("light", {}), ("dark", {"dark": True}), ("phone", {"width": 390, "height": 844})]:
            chromium = browser.shared_browser()
            chromium.prepare(**options)
            chromium.open(f"{serving.url}/#text={quote_plus(WORDS)}")
            chromium.wait("/ found/.test(document.getElementById('search-text').textContent)")
            chromium.wait("[...document.images].filter(image => image.getBoundingClientRect().top < innerHeight)"
                          ".every(image => image.complete && image.naturalWidth)")
            take(chromium, f"{directory}/list-{name}.png")
            chromium.open(f"{serving.url}/sessions/{PLAYER[0]}/{PLAYER[1]}")
            chromium.wait("document.documentElement.dataset.picture === 'ready'")
            take(chromium, f"{directory}/player-{name}.png")
        serving.stop()


if __name__ == "__main__":
    main(sys.argv[1])
