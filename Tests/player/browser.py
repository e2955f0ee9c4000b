"""Sessions made of the fixtures, a server for them, and a headless Chromium that looks at it.

Which program is tried says ENCODER_WORKER."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).resolve().parents[2]
WORKER = os.environ.get("ENCODER_WORKER", str(ROOT / ".build/debug/encoder-worker"))
# Conditions are waited for; this long only where something is broken.
PATIENCE_S = int(os.environ.get("PLAYER_PATIENCE_S", "120"))


def encode(output, *fixtures):
    """Sessions with the fixtures' names, in the directory `output`."""
    for fixture in fixtures:
        encode_batch(output, ROOT / "fixtures" / fixture, fixture)


def encode_batch(output, batch, session):
    """What is refused is said on standard error, and nobody's business here."""
    subprocess.run([WORKER, "encode", batch, "--output", output, "--session", session], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def generated(output, session, frames, picture="exact-1fps/0000.jpg", every=1000, start=1_767_859_512_340):
    """A session of one picture, again and again."""
    with tempfile.TemporaryDirectory() as batch:
        for number in range(frames):
            os.link(ROOT / "fixtures" / picture, f"{batch}/{start + number * every}.jpg")
        encode_batch(output, batch, session)


class Serving:
    """The program as a server, at a port that it chose."""

    def __init__(self, output):
        self.process = subprocess.Popen([WORKER, "serve", output, "--listen", "127.0.0.1:0"], text=True,
                                        stdout=subprocess.PIPE)
        self.url = self.process.stdout.readline().strip().rstrip("/")

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Browser:
    def __init__(self, width=1280, height=860, dark=False, before=""):
        """`before` is a script that runs before each page's own."""
        options = webdriver.ChromeOptions()
        for option in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                       "--force-color-profile=srgb", "--force-device-scale-factor=1", f"--window-size={width},{height}",
                       "--disable-background-networking", "--disable-component-update"]:
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.driver.set_script_timeout(PATIENCE_S)
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                     mobile=width < 500)
        self.command("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}])
        if before:
            self.command("Page.addScriptToEvaluateOnNewDocument", source=before)

    def command(self, name, **parameters):
        return self.driver.execute_cdp_cmd(name, parameters)

    def open(self, url):
        # Another page, also where only what is behind the # differs.
        self.driver.get("about:blank")
        self.driver.get(url)
        self.wait("document.documentElement.dataset.state !== 'loading'")

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition, *arguments):
        """Waits until a JavaScript expression holds, and gives it."""
        last = {}

        def holds(driver):
            return driver.execute_script(f"return ({condition})", *arguments)
        try:
            return WebDriverWait(self.driver, PATIENCE_S, poll_frequency=0.02).until(holds)
        except Exception as error:
            last = self.run("return {...document.documentElement.dataset, text: document.body.innerText}")
            raise AssertionError(f"never: {condition} {arguments}: {last}") from error

    def press(self, *keys):
        """Keys to what has the focus."""
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def complaints(self):
        """What the console says; that a missing file is missing, it always says."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] in ("SEVERE", "WARNING") and "Failed to load resource" not in entry["message"]]

    def requests(self):
        """Where requests went since the last time."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [message["params"]["request"]["url"] for message in messages
                if message["method"] == "Network.requestWillBeSent"]

    def close(self):
        self.driver.quit()


class PageTest(unittest.TestCase):
    """A test with sessions, a server and a browser; what it serves, `sessions` puts there."""

    browser_options = {}

    @classmethod
    def sessions(cls, output):
        pass

    @classmethod
    def damage(cls, output):
        """What happens to them while they are served."""

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
        cls.browser = Browser(**cls.browser_options)
        cls.addClassCleanup(cls.browser.close)

    def timeline(self, session):
        """The captures of a session as its manifests list them: {timeMs, startMs, endMs}."""
        captures = []
        for path in sorted((self.output / session).glob("segment-*.json")):
            now = json.loads(path.read_text())["startMs"]
            for frame in json.loads(path.read_text())["frames"]:
                if frame["status"] == "captured":
                    captures.append({"timeMs": frame["timeMs"], "startMs": now, "source": frame["source"]})
                now += frame["holdMs"]
                captures[-1]["endMs"] = now
        return captures

    def index(self, session):
        return json.loads((self.output / session / "session.json").read_text())

    def open_session(self, session, fragment=""):
        self.browser.open(f"{self.serving.url}/sessions/{session}/{fragment}")

    def number(self):
        """What the picture on screen says of itself, as fixtures/generate.py paints it."""
        return self.browser.run("""
            const video = document.querySelector('video');
            const canvas = Object.assign(document.createElement('canvas'), {width: video.videoWidth, height: video.videoHeight});
            const context = canvas.getContext('2d', {willReadFrequently: true});
            context.drawImage(video, 0, 0);
            let number = 0;
            for (let bit = 0; bit < 8; bit++) {
              const [x, y] = [canvas.width * (2 * bit + 1) / 16, canvas.height * 3 / 8].map(Math.floor);
              if (context.getImageData(x, y, 1, 1).data[1] > 127) number |= 1 << bit;
            }
            return number;""")

    def shown(self, frame, picture="ready"):
        """Waits until the page says that it shows a capture."""
        self.browser.wait(
            "document.documentElement.dataset.picture === arguments[0] && "
            "Number(document.documentElement.dataset.frame) === arguments[1]", picture, frame)
