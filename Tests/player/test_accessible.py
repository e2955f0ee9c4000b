"""Checks all pages with axe-core, in light and dark, on a desktop and a phone; and that they fit on a phone's
screen."""

import os
import unittest
from pathlib import Path

from selenium.webdriver.common.keys import Keys

import browser
from browser import PageTest
from test_touches import event, touched

# The path at which scripts/setup installs axe-core.
AXE = Path(os.environ.get("AXE_DIRECTORY", browser.ROOT / ".build/axe")) / "axe_playwright_python/axe.min.js"
LOOKS = {"light desktop": {}, "dark phone": {"width": 360, "height": 740, "dark": True}}
if browser.IS_FULL:
    LOOKS |= {"dark desktop": {"dark": True}, "light phone": {"width": 360, "height": 740}}


class Pages(PageTest):
    @classmethod
    def sessions(cls, output):
        browser.encode(output, "rotation", "gap", "corrupt-frames", "exact-1fps")
        touched(output, "touched", [event(500, "down", 45, 80)])
        browser.write_words(output, "gap", [("order", 0, 3_000), ("order" * 20, 1_000, 3_000)])

    @classmethod
    def damage(cls, output):
        sorted((output / "exact-1fps").glob("segment-*.mp4"))[0].unlink()
        (output / "broken").mkdir()
        (output / "broken/session.json").write_text("{")
        (output / "broken/segment-1767859512340.json").write_text("{")

    def each(self):
        """Yields the pages in all their states."""
        for fragment in ["#view=cards", "#view=rows&group=name"]:
            self.browser.open(f"{self.serving.url}/{fragment}")
            yield f"list {fragment}"
        for text, found in [("order", 2), ("violet", 0)]:
            self.browser.open(f"{self.serving.url}/#text={text}")
            self.browser.wait("document.querySelectorAll('#found a').length === arguments[0] &&"
                              " / found/.test(document.getElementById('search-text').textContent)", found)
            yield f"list, with {found} places of a word"
        self.browser.find("#choose").click()
        for box in self.browser.driver.find_elements("css selector", ".choice")[:2]:
            box.click()
        yield "list, with two sessions chosen"
        start = self.index("gap")["startMs"]
        for session, fragment, picture in [
                ("rotation", f"#t={start + 3_000}", "ready"), ("touched", f"#t={start + 1_000}", "ready"),
                ("corrupt-frames", "", "ready"),
                ("gap", f"#t={start + 10_000}", "gap"), ("exact-1fps", "", "missing")]:
            self.open_session(session, fragment)
            self.browser.wait("document.documentElement.dataset.picture === arguments[0]", picture)
            yield f"{session} {picture}"
        self.browser.find("#zoom-all").send_keys(Keys.TAB)
        self.browser.wait("!document.getElementById('tip').hidden")
        yield "with a preview"
        self.browser.press("+", "+", "+")
        self.browser.run("document.querySelector('.keys').open = true")
        self.browser.wait("!document.getElementById('overview').hidden")
        yield "zoomed, with keys"
        self.browser.run("""
            document.querySelector('.keys').open = false;
            document.getElementById('part').open = true""")
        self.browser.wait("!document.querySelector('.range').hidden")
        yield "with a part"
        self.open_session("gap")
        self.shown(0)
        self.browser.run("document.getElementById('jump-time').value = '2026-01-08T08:05:22'")
        self.browser.find("#jump-time").send_keys(Keys.ENTER)
        self.browser.wait("document.getElementById('jump-text').textContent !== ''")
        yield "after a jump into a gap"
        for other in ["rotation", "nobody"]:
            self.browser.driver.get(f"{self.serving.url}/compare?a=gap&b={other}#t={start + 10_000}")
            self.browser.wait("document.documentElement.dataset.state !== 'loading'")
            yield f"gap beside {other}"
        self.browser.command("Network.enable")
        self.browser.command("Network.setBlockedURLs", urls=["*timeline.json"])
        self.open_session("gap")
        self.browser.command("Network.setBlockedURLs", urls=[])
        yield "none"

    def test_every_page_passes_axe_and_fits_each_screen_and_theme(self):
        source = AXE.read_text()
        self.addCleanup(self.browser.look)
        for page in self.each():
            # The debugger injects the script, because the page's content security policy forbids it.
            self.browser.command("Runtime.evaluate", expression=source)
            for look, options in LOOKS.items():
                with self.subTest(page=page, look=look):
                    self.browser.look(**options)
                    # The browser lays the page out and paints it in these animation frames.
                    self.browser.run("""
                        return new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))""")
                    self.check()
                    if "width" in options:
                        self.check_size_of_targets()
            self.browser.look()

    def check(self):
        found, passed = self.browser.run("""
            return axe.run().then(result => [result.violations.map(
              violation => `${violation.id}: ${violation.nodes.map(node => node.html).join(' | ')}`),
              result.passes.map(pass => pass.id)])""")
        self.assertEqual(found, [])
        self.assertIn("color-contrast", passed)
        self.assertGreater(len(passed), 10)
        # A busy browser may still lay the page out for the look.
        self.browser.wait("document.documentElement.scrollWidth === document.documentElement.clientWidth")

    def check_size_of_targets(self):
        small = self.browser.run("""
            return [...document.querySelectorAll('a, button, select, input, summary, [role=slider]')].filter(element => {
              const target = element.closest('.session') ?? element;
              const {width, height} = target.getBoundingClientRect();
              return element.offsetParent && (width < 44 || height < 44);
            }).map(element => element.outerHTML)""")
        self.assertEqual(small, [])


class Phone(PageTest):
    browser_options = {"width": 360, "height": 740}

    @classmethod
    def sessions(cls, output):
        browser.encode(output, "rotation")

    def test_a_phone_plays_and_steps(self):
        self.open_session("rotation")
        self.browser.wait("document.documentElement.dataset.picture === 'ready'")
        self.browser.find("#next").click()
        self.shown(1)
        self.set_rate("4")
        self.browser.find("#play").click()
        self.browser.wait("document.documentElement.dataset.state === 'ended'")
        self.assert_shown(7)


class Contrast(PageTest):
    """axe-core does not check text on a canvas, so this test compares the canvas's colours."""

    browser_options = {"dark": True}

    @classmethod
    def sessions(cls, output):
        browser.encode(output, "gap")

    def test_timeline_markers_have_enough_contrast(self):
        for dark in ["light", "dark"]:
            self.browser.command("Emulation.setEmulatedMedia",
                                 features=[{"name": "prefers-color-scheme", "value": dark}])
            self.open_session("gap")
            colours = self.browser.run("""
                const style = getComputedStyle(document.documentElement);
                const context = document.createElement('canvas').getContext('2d');
                return Object.fromEntries(['hold', 'tick', 'gap', 'surface', 'dim', 'turn', 'bad', 'text', 'change'].map(name => {
                  context.fillStyle = style.getPropertyValue(`--${name}`);
                  return [name, context.fillStyle];
                }))""")
            for one, other, least in [("tick", "hold", 3), ("dim", "surface", 4.5), ("turn", "surface", 3), ("change", "hold", 3),
                                      ("bad", "surface", 3), ("text", "hold", 4.5), ("text", "gap", 4.5)]:
                with self.subTest(scheme=dark, colours=(one, other)):
                    self.assertGreaterEqual(ratio(colours[one], colours[other]), least)


def ratio(one, other):
    """Returns the contrast ratio as WCAG defines it."""
    def luminance(colour):
        parts = [int(colour[index:index + 2], 16) / 255 for index in (1, 3, 5)]
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


if __name__ == "__main__":
    unittest.main()
