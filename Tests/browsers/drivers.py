"""Drives headless Chromium, Firefox ESR and WebKitGTK with the same few calls.

Each driver opens pages, runs scripts and takes screenshots, which show what a user sees."""

import base64
import io
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service as ChromeService

MINIBROWSER = "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser"
SCRIPT_S = 60


class _Selenium:
    def __init__(self, driver):
        self.driver = driver
        driver.set_script_timeout(SCRIPT_S)

    def open(self, url):
        self.driver.get(url)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def run_async(self, script, *arguments):
        """Runs an asynchronous script: the script calls its last argument at its end."""
        return self.driver.execute_async_script(script, *arguments)

    def screenshot(self):
        return Image.open(io.BytesIO(self.driver.get_screenshot_as_png())).convert("RGB")

    def close(self):
        self.driver.quit()


class Chromium(_Selenium):
    name = "Chromium"

    def __init__(self):
        options = webdriver.ChromeOptions()
        for option in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                       "--force-color-profile=srgb", "--force-device-scale-factor=1", "--window-size=1280,900",
                       "--autoplay-policy=no-user-gesture-required"]:
            options.add_argument(option)
        super().__init__(webdriver.Chrome(service=ChromeService("/usr/bin/chromedriver"), options=options))
        self.version = self.driver.capabilities["browserVersion"]


class WebKitGTK(_Selenium):
    """Needs a display and a session bus: see `with_display`."""

    name = "WebKitGTK"

    def __init__(self):
        os.environ["WEBKIT_DISABLE_SANDBOX"] = "1"
        options = webdriver.WebKitGTKOptions()
        options.binary_location = MINIBROWSER
        options.add_argument("--automation")
        super().__init__(webdriver.WebKitGTK(options=options, executable_path="/usr/bin/WebKitWebDriver"))
        self.version = self.driver.capabilities["browserVersion"]


class Firefox:
    """Uses Marionette, Firefox's own protocol, because Debian has no geckodriver."""

    name = "Firefox"

    def __init__(self):
        self.profile = tempfile.mkdtemp()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with open(f"{self.profile}/user.js", "w") as preferences:
            for name, value in {"marionette.port": port, "media.autoplay.default": 0, "gfx.color_management.mode": 0,
                                "browser.shell.checkDefaultBrowser": False, "app.update.disabledForTesting": True}.items():
                preferences.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
        self.process = subprocess.Popen(
            ["firefox-esr", "--headless", "--marionette", "--no-remote", "--profile", self.profile],
            env={**os.environ, "HOME": self.profile}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + SCRIPT_S
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port))
                break
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    self.close()
                    raise
                time.sleep(0.2)
        self.socket.settimeout(2 * SCRIPT_S)
        self.reader = self.socket.makefile("rb")
        self._message()  # the greeting of the server
        self.count = 0
        session = self._call("WebDriver:NewSession", {"capabilities": {}})
        self.version = session["capabilities"]["browserVersion"]
        self._call("WebDriver:SetTimeouts", {"script": 1000 * SCRIPT_S, "pageLoad": 1000 * SCRIPT_S})
        self._call("WebDriver:SetWindowRect", {"width": 1280, "height": 985})

    def _message(self):
        length = b""
        while (byte := self.reader.read(1)) != b":":
            if not byte:
                raise ConnectionError("Firefox has ended")
            length += byte
        return json.loads(self.reader.read(int(length)))

    def _call(self, name, parameters):
        self.count += 1
        text = json.dumps([0, self.count, name, parameters]).encode()
        self.socket.sendall(str(len(text)).encode() + b":" + text)
        _, _, error, result = self._message()
        if error:
            raise RuntimeError(f"{name}: {error.get('message')}")
        return result

    def open(self, url):
        self._call("WebDriver:Navigate", {"url": url})

    def run(self, script, *arguments):
        return self._call("WebDriver:ExecuteScript", {"script": script, "args": list(arguments)})["value"]

    def run_async(self, script, *arguments):
        return self._call("WebDriver:ExecuteAsyncScript", {"script": script, "args": list(arguments)})["value"]

    def screenshot(self):
        picture = self._call("WebDriver:TakeScreenshot", {"full": False})["value"]
        return Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


ALL = {driver.name.lower(): driver for driver in (Chromium, Firefox, WebKitGTK)}


def with_display(arguments):
    """Restarts this program with a display and a session bus, unless it has them."""
    if os.environ.get("PLAYERS_DISPLAY"):
        return
    os.execvpe("dbus-run-session", ["dbus-run-session", "--", "xvfb-run", "-a", "-s", "-screen 0 1280x1024x24", *arguments],
               {**os.environ, "PLAYERS_DISPLAY": "1"})
