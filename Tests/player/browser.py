"""Makes sessions from the fixtures, serves them, and opens them in a headless Chromium.

ENCODER_WORKER names the program under test. TEST_EXTENT=full runs every case instead of a sample."""

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from selenium import webdriver
from selenium.common.exceptions import JavascriptException, WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

ROOT = Path(__file__).resolve().parents[2]
WORKER = os.environ.get("ENCODER_WORKER", str(ROOT / ".build/debug/encoder-worker"))
# Tests wait for conditions. Only a broken page takes this long.
PATIENCE_S = int(os.environ.get("PLAYER_PATIENCE_S", "300"))
IS_FULL = os.environ.get("TEST_EXTENT") == "full"

# Encoded fixtures by name, for all classes of this process.
_encoded = tempfile.TemporaryDirectory()


def encode(output, *fixtures):
    """Puts sessions with the fixtures' names into the directory `output`."""
    for fixture in fixtures:
        session = Path(_encoded.name) / fixture
        if not session.exists():
            encode_batch(_encoded.name, ROOT / "fixtures" / fixture, fixture)
        shutil.copytree(session, Path(output) / fixture)


def encode_batch(output, batch, session, final=False):
    """Encodes a batch and verifies the session. Refused frames are allowed."""
    subprocess.run([WORKER, "encode", batch, "--output", output, "--session", session] + ["--final"] * final, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    report = subprocess.run([WORKER, "verify", Path(output) / session], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
    if report.returncode != 0:
        raise AssertionError(f"verify finds faults in session {session}: {report.stdout}")


def generated(output, session, frames, pictures=("exact-1fps/0000.jpg",), every=1000, start=1_767_859_512_340,
              final=False):
    """Encodes a batch of `frames` captures. Each picture fills an equal share of the captures."""
    with tempfile.TemporaryDirectory() as scratch:
        batch = f"{scratch}/batch"
        os.mkdir(batch)
        # Stores one copy of each picture on this file system, and links to it.
        copies = {picture: shutil.copy(ROOT / "fixtures" / picture, scratch) for picture in set(pictures)}
        for number in range(frames):
            os.link(copies[pictures[number * len(pictures) // frames]], f"{batch}/{start + number * every}.jpg")
        encode_batch(output, batch, session, final)


def write_words(output, session, words):
    """Writes the files of `encoder-worker text` for a session: words as (text, from, until), in milliseconds from its start."""
    directory = Path(output) / session
    start = json.loads((directory / "session.json").read_text())["startMs"]
    for path in sorted(directory.glob("segment-*[0-9].json")):
        manifest = json.loads(path.read_text())
        first, last = manifest["startMs"], manifest["endMs"]
        inside = [(text, max(first, start + since), min(last, start + until), row) for row, (text, since, until) in enumerate(words)
                  if start + since < last and start + until > first]
        path.with_suffix(".text.json").write_text(json.dumps({
            "format": "segment-text/1", "session": session, "file": manifest["file"], "startMs": first, "endMs": last,
            "sha256": manifest["sha256"], "engine": "none", "language": "eng", "pictures": 1, "unreadMs": [], "leftOut": 0,
            "words": [{"text": text, "fromMs": since, "untilMs": until, "x": 10, "y": 20 * row, "width": 60, "height": 12,
                       "confidence": 96} for text, since, until, row in inside]}, sort_keys=True, separators=(",", ":")))


class Serving:
    """Runs the program as a server, at a port that it chooses."""

    def __init__(self, output):
        self.process = subprocess.Popen([WORKER, "serve", output, "--listen", "127.0.0.1:0"], text=True,
                                        stdout=subprocess.PIPE)
        self.url = self.process.stdout.readline().strip().rstrip("/")

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Browser:
    def __init__(self, **options):
        chrome = webdriver.ChromeOptions()
        for option in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                       "--force-color-profile=srgb", "--force-device-scale-factor=1",
                       "--disable-background-networking", "--disable-component-update"]:
            chrome.add_argument(option)
        chrome.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=chrome)
        self.driver.set_script_timeout(PATIENCE_S)
        self.driver.set_page_load_timeout(PATIENCE_S)
        self.before = None
        self.opened = 0
        self.prepare(**options)

    def prepare(self, width=1280, height=860, dark=False, before="", zone="UTC"):
        """Sets the screen, the time zone, and the script that runs before each page's own."""
        self.look(width, height, dark)
        self.command("Emulation.setTimezoneOverride", timezoneId=zone)
        if self.before:
            self.command("Page.removeScriptToEvaluateOnNewDocument", identifier=self.before)
        self.before = None
        if before:
            self.before = self.command("Page.addScriptToEvaluateOnNewDocument", source=before)["identifier"]

    def look(self, width=1280, height=860, dark=False):
        """Changes the screen of the open page. A narrow screen simulates a phone."""
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                     mobile=width < 500)
        self.command("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}])

    def command(self, name, **parameters):
        return self.driver.execute_cdp_cmd(name, parameters)

    def open(self, url):
        # Chromium reloads no page if only the part after the # differs. The server ignores the query.
        self.opened += 1
        path, hash, fragment = url.partition("#")
        self.driver.get(f"{path}?{self.opened}{hash}{fragment}")
        self.wait("document.documentElement.dataset.state !== 'loading'")

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition, *arguments):
        """Waits until a JavaScript expression is true, and returns its value."""
        return self.when(condition, "held", *arguments)

    def when(self, condition, result, *arguments):
        """Waits until a JavaScript expression is true. Returns the value of another one from the same turn of the
        page's event loop. Looks directly after each repaint, at which the page reports its state."""
        script = """
            const done = arguments[arguments.length - 1];
            %s
            const given = [...arguments].slice(0, -1);
            const look = () => requestAnimationFrame(() => setTimeout(() => {
              const held = (function () { return (%s); })(...given);
              if (held) return done((function () { return (%s); })(...given));
              look();
            }));
            look();""" % (PICTURE, condition, result)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.driver.execute_async_script(script, *arguments)
            except JavascriptException as error:
                # The browser has loaded another page meanwhile.
                if "document unloaded" in str(error) and time.monotonic() < deadline:
                    continue
                raise
            except WebDriverException as error:
                page = self.run("return {...document.documentElement.dataset, text: document.body.innerText}")
                raise AssertionError(f"timeout while waiting for {condition} {arguments} at {self.driver.current_url}: {page}") from error

    def press(self, *keys):
        """Sends keys to the element that has the focus."""
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def call(self, module, expression):
        """Returns the value of an expression about a `module` of the pages."""
        return self.driver.execute_async_script(
            "const done = arguments[0]; import('/assets/%s').then(module => done(%s))" % (module, expression))

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def complaints(self):
        """Returns the console messages since the last call, without missing files, which Chromium always reports."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] in ("SEVERE", "WARNING") and "Failed to load resource" not in entry["message"]]

    def requests(self):
        """Returns the addresses of all requests since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [message["params"]["request"]["url"] for message in messages
                if message["method"] == "Network.requestWillBeSent"]

    def close(self):
        self.driver.quit()


# Reads the number in the picture on screen. fixtures/generate.py paints it.
PICTURE = """
    function pictureNumber() {
      const video = document.querySelector('video');
      const canvas = window.testCanvas ??= document.createElement('canvas');
      canvas.width = video.videoWidth, canvas.height = video.videoHeight;
      const context = window.testContext ??= canvas.getContext('2d', {willReadFrequently: true});
      context.drawImage(video, 0, 0);
      let number = 0;
      for (let bit = 0; bit < 8; bit++) {
        const [x, y] = [canvas.width * (2 * bit + 1) / 16, canvas.height * 3 / 8].map(Math.floor);
        if (context.getImageData(x, y, 1, 1).data[1] > 127) number |= 1 << bit;
      }
      return number;
    }"""

# Whether the page reports a capture: its number, and `ready` or `missing`.
SHOWN = ("Number(document.documentElement.dataset.frame) === arguments[0] && "
         "document.documentElement.dataset.picture === arguments[1]")
# Whether the video has a picture, too: a new media source may have replaced the one that the page has reported.
PAINTED = f"{SHOWN} && document.querySelector('video').readyState >= 2"

_browser = None


def shared_browser(**options):
    """Returns the browser that all tests of this process share. Replaces a browser that does not respond."""
    global _browser
    try:
        if _browser:
            _browser.prepare(**options)
            return _browser
    except WebDriverException:
        close_browser()
    _browser = Browser(**options)
    return _browser


def close_browser():
    global _browser
    browser, _browser = _browser, None
    if browser:
        browser.close()


atexit.register(close_browser)
# Closes the browser when SIGTERM stops the test run, too.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


class PageTest(unittest.TestCase):
    """A test with sessions, a server and the browser. `sessions` makes the served sessions."""

    browser_options = {}

    @classmethod
    def sessions(cls, output):
        pass

    @classmethod
    def damage(cls, output):
        """Damages the sessions while the server runs."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.output = Path(directory.name) / "output"
        cls.output.mkdir()
        cls.sessions(cls.output)
        cls.serving = Serving(cls.output)
        cls.addClassCleanup(cls.serving.stop)
        cls.damage(cls.output)
        cls.browser = shared_browser(**cls.browser_options)

    def timeline(self, session):
        """Returns the captures of a session from its manifests: {timeMs, startMs, endMs}."""
        captures = []
        for path in sorted((self.output / session).glob("segment-*.json")):
            now = json.loads(path.read_text())["startMs"]
            for frame in json.loads(path.read_text())["frames"]:
                if frame["status"] == "captured":
                    captures.append({"timeMs": frame["timeMs"], "startMs": now, "source": frame["source"],
                                     "segment": path.stem})
                now += frame["holdMs"]
                captures[-1]["endMs"] = now
        return captures

    def index(self, session):
        return json.loads((self.output / session / "session.json").read_text())

    def open_session(self, session, fragment=""):
        self.browser.open(f"{self.serving.url}/sessions/{session}/{fragment}")

    def set_rate(self, rate):
        self.browser.run("""
            const rate = document.getElementById('rate');
            rate.value = arguments[0];
            rate.dispatchEvent(new Event('change'));""", rate)

    def shown(self, frame, picture="ready"):
        """Waits until the page reports a capture."""
        self.browser.wait(SHOWN, frame, picture)

    def assert_shown(self, frame):
        """Waits until the page reports a capture, and reads the picture in the same turn of the event loop."""
        self.assertEqual(self.browser.when(PAINTED, "pictureNumber()", frame, "ready"), frame)
