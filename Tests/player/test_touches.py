"""Tests the drawing of pointer events over the picture, in headless Chromium. The tests read the painted pixels."""

import json
import shutil
import unittest
from pathlib import Path

import browser
from browser import PageTest

START = 1_767_859_512_340
WIDTH, HEIGHT = 180, 320

# Reads the box around the painted pixels of the layer, as shares of the picture; null without any.
PAINTED = """
    function painted() {
      const layer = document.getElementById('touch-layer');
      if (layer.hidden) return null;
      const {width, height} = layer;
      const {data} = layer.getContext('2d').getImageData(0, 0, width, height);
      let [left, top, right, bottom] = [width, height, -1, -1];
      for (let pixel = 0; pixel < width * height; pixel++) {
        if (!data[4 * pixel + 3]) continue;
        const [x, y] = [pixel % width, Math.floor(pixel / width)];
        [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x), Math.max(bottom, y)];
      }
      if (right < 0) return null;
      return {x: (left + right + 1) / 2 / width, y: (top + bottom + 1) / 2 / height,
              width: (right - left + 1) / width, height: (bottom - top + 1) / height};
    }"""
SETTLED = ("document.documentElement.dataset.picture === 'ready' && "
           "Number(document.documentElement.dataset.frame) === arguments[0]")


def event(at, kind, x, y, pointer=0):
    return {"timeMs": START + at, "type": kind, "x": x, "y": y, "pointer": pointer}


def touched(output, session, events, masks=None, scale=1, pictures=("exact-1fps",) * 12):
    """Encodes a picture a second with these events."""
    batch = Path(output).parent / f"batch-{session}"
    batch.mkdir()
    frames = []
    for number, picture in enumerate(pictures):
        source = sorted((browser.ROOT / "fixtures" / picture).glob("*.jpg"))[number]
        shutil.copy(source, batch / f"{number}.jpg")
        frames.append({"file": f"{number}.jpg", "timeMs": START + 1000 * number, "masks": (masks or {}).get(number, [])})
    (batch / "batch.json").write_text(json.dumps({
        "version": 1, "session": session, "scale": scale, "frames": frames, "events": events}))
    browser.encode_batch(output, batch, session)


class Touches(PageTest):
    @classmethod
    def sessions(cls, output):
        press = [event(1500, "down", 45, 80), event(2500, "move", 90, 240), event(3600, "up", 90, 240)]
        touched(output, "press", press)
        touched(output, "points", [event(1500, "down", 15, 27)], scale=3)
        touched(output, "border", [event(4900, "down", 45, 80), event(5100, "move", 135, 80)])
        keyboard = [{"x": 0, "y": 200, "width": 180, "height": 120}]
        touched(output, "hidden", [
            event(2100, "down", 90, 100), event(2200, "move", 90, 190), event(2300, "move", 90, 250),
            event(2400, "move", 90, 300), event(2500, "move", 90, 195), event(2600, "up", 90, 150),
            event(3100, "down", 90, 260)],
            {number: keyboard for number in range(2, 5)})
        turned = [event(0, "down", 90, 160), event(3100, "move", 240, 45), event(6100, "move", 45, 80)]
        touched(output, "turned", turned, pictures=("rotation",) * 8)
        browser.encode(output, "exact-1fps")

    def at(self, session, ms, frame):
        """Opens a session at a time, and waits for its picture."""
        self.open_session(session, f"#t={START + ms}")
        self.browser.wait(SETTLED, frame)

    def seek(self, ms, frame):
        self.browser.run("location.hash = `t=${arguments[0]}`", START + ms)
        self.browser.wait(SETTLED + " && Math.abs(Number(document.documentElement.dataset.position) - arguments[1]) < 2",
                          frame, ms)

    def painted(self):
        return self.browser.run(PAINTED + "return painted()")

    def layer(self, expression="held"):
        """Waits until the layer shows something. Returns the value of an expression from the same turn of the event loop."""
        return self.browser.when("!document.getElementById('touch-layer').hidden", expression)

    def painted_box(self):
        """Waits until something is painted, and returns the box around it."""
        box = f"(function () {{ {PAINTED} return painted(); }})()"
        return self.browser.when(f"{box} !== null", box)

    def assert_dot(self, x, y, width=WIDTH, height=HEIGHT):
        """Checks that the only painted thing is a dot at a place in the picture."""
        box = self.painted_box()
        self.assertAlmostEqual(box["x"], x / width, delta=0.01)
        self.assertAlmostEqual(box["y"], y / height, delta=0.01)
        self.assertLess(box["width"], 0.2)

    def test_a_dot_is_where_the_pointer_is_while_it_is_down(self):
        # The browser is shared: it still has the messages of the tests before.
        self.browser.complaints()
        self.at("press", 1400, 1)
        self.assertIsNone(self.painted())
        for ms, frame, place in [(1600, 1, (45, 80)), (2400, 2, (45, 80)), (2500, 2, (90, 240)), (3500, 3, (90, 240))]:
            with self.subTest(ms=ms):
                self.seek(ms, frame)
                self.assert_dot(*place)
                self.assertEqual(self.layer("document.getElementById('touch-layer').dataset.down"), "1")
        self.seek(3700, 3)
        self.assertEqual(self.layer("document.getElementById('touch-layer').dataset.down"), "0")
        self.seek(5000, 5)
        self.assertIsNone(self.painted())
        # The dot is back after a step back in time, and it is not a part of the video.
        self.seek(1600, 1)
        self.assert_dot(45, 80)
        self.assert_shown(1)
        # Chromium advises the test to read the canvas in another way.
        self.assertEqual([text for text in self.browser.complaints() if "getImageData" not in text], [])

    def test_the_dot_follows_the_size_of_the_picture_and_its_unit(self):
        self.at("points", 1600, 1)
        self.assert_dot(45, 81)
        for size in [{"width": 360, "height": 740}, {"width": 900, "height": 500}, {}]:
            with self.subTest(size=size):
                self.browser.look(**size)
                self.browser.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
                box = self.painted_box()
                self.assertAlmostEqual(box["x"], 45 / WIDTH, delta=0.02)
                self.assertAlmostEqual(box["y"], 81 / HEIGHT, delta=0.02)
                layer, screen = self.browser.run("""
                    return ['touch-layer', 'screen'].map(id => document.getElementById(id).getBoundingClientRect().toJSON())""")
                self.assertEqual(layer, screen)

    def test_a_press_goes_on_in_the_next_segment(self):
        self.at("border", 5050, 5)
        self.assert_dot(45, 80)
        # The ring at the place of the press is gone then.
        self.seek(5750, 5)
        self.assert_dot(135, 80)

    def test_a_turned_picture_has_its_own_places(self):
        self.at("turned", 3500, 3)
        self.assert_dot(240, 45, HEIGHT, WIDTH)

    def test_nothing_is_drawn_in_a_masked_region_and_no_line_crosses_it(self):
        self.browser.look()
        self.browser.command("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-reduced-motion", "value": "no-preference"}])
        self.addCleanup(self.browser.look)
        self.at("hidden", 2250, 2)
        self.layer()
        for ms in [2350, 2450, 2550, 2650, 3150, 3500]:
            with self.subTest(ms=ms):
                self.seek(ms, ms // 1000)
                below = self.browser.run("""
                    const layer = document.getElementById('touch-layer');
                    if (layer.hidden) return 0;
                    // The dots and rings at the edge reach into the region; lines would lead far into it.
                    const top = Math.ceil(layer.height * 225 / 320);
                    const {data} = layer.getContext('2d').getImageData(0, top, layer.width, layer.height - top);
                    return data.reduce((sum, value, index) => sum + (index % 4 === 3 ? value : 0), 0);""")
                self.assertEqual(below, 0)
        # No pointer is down while it is under the mask.
        self.seek(2350, 2)
        self.assertEqual(self.browser.run("return document.getElementById('touch-layer').dataset.down"), "0")

    def test_a_trail_follows_the_pointer_and_fades(self):
        self.browser.command("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-reduced-motion", "value": "no-preference"}])
        self.addCleanup(self.browser.look)
        self.at("border", 5150, 5)
        box = self.painted_box()
        # From the press to the dot.
        self.assertGreater(box["width"], (135 - 45) / WIDTH)
        self.seek(6500, 6)
        self.assert_dot(135, 80)

    def test_the_trail_is_left_out_for_readers_who_want_no_motion(self):
        self.at("border", 5850, 5)
        self.assert_dot(135, 80)

    def test_dots_move_while_the_session_plays(self):
        self.at("press", 500, 0)
        self.browser.run("""
            window.seen = new Set();
            new MutationObserver(() => seen.add(document.getElementById('touch-layer').dataset.down))
              .observe(document.getElementById('touch-layer'), {attributes: true});""")
        self.browser.press(" ")
        self.browser.wait("document.documentElement.dataset.state === 'playing' && seen.has('1')")
        self.browser.wait("Number(document.documentElement.dataset.position) > 4800")
        self.assertIsNone(self.painted())

    def test_the_button_and_its_key_hide_the_touches(self):
        self.at("press", 1600, 1)
        self.assert_dot(45, 80)
        button = self.browser.find("#touches")
        self.assertEqual(button.get_attribute("aria-pressed"), "true")
        for toggle in [button.click, lambda: self.browser.press("t")]:
            toggle()
            self.browser.wait("document.getElementById('touch-layer').hidden")
            self.assertEqual(button.get_attribute("aria-pressed"), "false")
            self.seek(1700, 1)
            self.assertIsNone(self.painted())
            self.browser.press("t")
            self.assert_dot(45, 80)
            self.assertEqual(button.get_attribute("aria-pressed"), "true")

    def test_a_screen_reader_is_told_where_the_pointer_is(self):
        self.at("press", 1600, 1)
        self.layer()
        words = "touched at 25 % from the left, 25 % from the top"
        self.assertEqual(self.browser.find("#touch-layer").get_attribute("aria-label"), words)
        self.seek(1700, 1)
        self.browser.wait("document.getElementById('said').textContent.includes(arguments[0])", words)

    def test_a_session_without_touches_offers_none_and_asks_for_none(self):
        self.browser.requests()
        self.at("exact-1fps", 1600, 1)
        self.assertFalse(self.browser.find("#touches").is_displayed())
        self.assertFalse([url for url in self.browser.requests() if "segment-" in url and url.endswith(".json")])


if __name__ == "__main__":
    unittest.main()
