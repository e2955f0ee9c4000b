"""Tests the changed area on the page of a session: the curve, the keys, and the text. And the map of a film, as scripts have
it."""

import json
import os
import random
import tempfile
import unittest
import urllib.request

from PIL import Image, ImageDraw
from selenium import webdriver
from selenium.webdriver.common.keys import Keys

import browser
from browser import PageTest

START = 1_767_859_512_340
SIDE = 16
COLUMNS, ROWS = 20, 15


def painted(output, session, changes, every):
    """Encodes a batch of a capture for each number: so many of its 300 blocks differ from the capture before."""
    with tempfile.TemporaryDirectory() as batch:
        picture = Image.new("RGB", (COLUMNS * SIDE, ROWS * SIDE), (240, 240, 240))
        draw = ImageDraw.Draw(picture)
        for number, blocks in enumerate(changes):
            for block in range(blocks):
                x, y = block % COLUMNS * SIDE, block // COLUMNS * SIDE
                draw.rectangle((x, y, x + SIDE - 1, y + SIDE - 1), fill=(20 * number % 256, 90, 30 if number % 2 else 220))
            picture.save(os.path.join(batch, f"{START + number * every}.png"))
        browser.encode_batch(output, batch, session)


class Changes(PageTest):
    """Of 300 blocks, 15 are a big change."""

    blocks = [0, 0, 300, 3, 0, 15, 14, 0, 0, 75, 0, 0]

    @classmethod
    def sessions(cls, output):
        painted(output, "busy", cls.blocks, every=1_000)
        painted(output, "fast", [0, 0, 60, 60, 60, 0, 60, 0, 0, 0, 60], every=200)
        browser.encode(output, "single-frame")

    def setUp(self):
        self.browser.prepare()
        self.open_session("busy")
        self.shown(0)

    def served(self, session):
        with urllib.request.urlopen(f"{self.serving.url}/sessions/{session}/timeline.json") as answer:
            return json.load(answer)["segments"]

    def test_timeline_has_the_numbers_of_the_manifests(self):
        manifests = [json.loads(path.read_text()) for path in sorted((self.output / "busy").glob("segment-*.json"))]
        numbers = [[frame.get("changedBlocks") for frame in manifest["frames"]] for manifest in manifests]
        self.assertEqual([segment["changedBlocks"] for segment in self.served("busy")], numbers)
        captured = [frame.get("changedBlocks") for manifest in manifests for frame in manifest["frames"]
                    if frame["status"] == "captured"]
        self.assertEqual(captured, [None] + self.blocks[1:])
        self.assertNotIn("changedBlocks", self.served("single-frame")[0])

    def heights(self):
        """Returns the height of the curve at each capture, in pixels, and whether it has its colour."""
        return self.browser.run("""
            const canvas = document.getElementById('map');
            const context = canvas.getContext('2d');
            const probe = document.createElement('canvas').getContext('2d');
            const wanted = ['change', 'hold'].map(name => {
              probe.fillStyle = getComputedStyle(canvas).getPropertyValue(`--${name}`);
              probe.fillRect(0, 0, 1, 1);
              return [...probe.getImageData(0, 0, 1, 1).data].slice(0, 3);
            });
            return [...Array(12).keys()].map(number => {
              const x = Math.floor(canvas.width * number / 12);
              const {data} = context.getImageData(x, 0, 1, canvas.height - 2);
              let height = 0;
              for (let y = canvas.height - 3; y > 0; y--) {
                const pixel = [...data.slice(4 * y, 4 * y + 3)];
                // The edge of the curve mixes both colours.
                const isCurve = pixel.every((value, part) => Math.abs(value - wanted[0][part]) < Math.abs(value - wanted[1][part]));
                if (!isCurve) break;
                height++;
              }
              return height;
            })""")

    def test_curve_is_as_high_as_the_changed_area(self):
        for dark in [False, True]:
            with self.subTest(dark=dark):
                self.browser.look(dark=dark)
                self.open_session("busy")
                self.shown(0)
                heights = self.heights()
                # Nothing is drawn where nothing changed, and where that is not known.
                for number, blocks in enumerate(self.blocks):
                    if blocks == 0:
                        self.assertEqual(heights[number], 0, number)
                self.assertGreater(heights[2], 20)
                self.assertGreater(heights[2], heights[9] + 5)
                self.assertGreater(heights[9], heights[5] + 3)
                self.assertGreater(heights[3], 0)

    def test_curve_of_a_day_has_the_largest_share_at_each_pixel(self):
        curve = self.browser.call("changes.js", """[...module.curve(
            [...Array(86_400).keys()].map(second => ({
              atMs: second * 1000, change: second === 43_200 ? 1 : second === 43_201 ? 0.25 : second === 80_000 ? 0.0001 : undefined,
              segment: {}})),
            {fromMs: 0, toMs: 86_400_000}, 300)]""")
        self.assertEqual(len(curve), 301)
        self.assertEqual(curve[150], 1)
        self.assertAlmostEqual(curve[151], 2 / 3, places=5)
        self.assertAlmostEqual(curve[277], 0.1, places=5)
        self.assertEqual({round(height, 3) for column, height in enumerate(curve)
                          if abs(column - 150) > 2 and abs(column - 277) > 2}, {0})

    def test_share_is_that_of_all_blocks(self):
        for changed, size, share in [(0, (16, 16), 0), (1, (17, 16), 0.5), (3, (32, 33), 0.5), (9, (16, 16), 1),
                                     ("null", (16, 16), None), ("undefined", (16, 16), None), (-1, (16, 16), None),
                                     ("'1'", (16, 16), None), (0.5, (16, 16), None)]:
            with self.subTest(changed=changed, size=size):
                self.assertEqual(self.browser.call("changes.js", f"module.changedShare({changed}, "
                                                   f"{{width: {size[0]}, height: {size[1]}}})"), share)

    def test_keys_go_to_big_changes_and_stop_at_the_last(self):
        for key, number in [("n", 2), ("n", 5), ("N", 9), ("p", 5), ("p", 2)]:
            self.browser.press(key)
            self.shown(number)
        self.assertEqual(self.browser.find("#jump-text").text, "")
        self.browser.press("p")
        self.browser.wait("document.getElementById('jump-text').textContent === 'There is no big change before this.'")
        self.shown(2)
        self.browser.press(Keys.END, "n")
        self.browser.wait("document.getElementById('jump-text').textContent === 'There is no big change after this.'")
        self.browser.press(Keys.ARROW_LEFT, "p")
        self.shown(9)
        self.assertEqual(self.browser.find("#jump-text").text, "")

    def test_buttons_do_the_same(self):
        self.browser.find("#change-next").click()
        self.shown(2)
        self.browser.find("#change-next").click()
        self.shown(5)
        self.browser.find("#change-previous").click()
        self.shown(2)

    def test_changes_within_half_a_second_are_one(self):
        self.open_session("fast")
        self.shown(0)
        for number in [2, 10]:
            self.browser.press("n")
            self.shown(number)
        self.browser.press("p")
        self.shown(2)

    def test_page_says_how_much_has_changed(self):
        for number, words in [(1, "nothing"), (2, "100 % of the picture"), (3, "1.0 % of the picture")]:
            self.browser.press(Keys.ARROW_RIGHT)
            self.shown(number)
            self.assertEqual(self.browser.find("#changed").text, words)
            self.assertTrue(self.browser.find("#timeline").get_attribute("aria-valuetext").endswith(f", changed: {words}"))
        canvas = self.browser.find("#map")
        move = webdriver.ActionChains(self.browser.driver)
        move.move_to_element_with_offset(canvas, round(canvas.size["width"] * (9.5 / 12 - 0.5)), 0).perform()
        self.assertIn("changed: 25 % of the picture", self.browser.find("#tip").text)

    def test_two_sessions_side_by_side_say_it_too(self):
        self.browser.driver.get(f"{self.serving.url}/compare?a=busy&b=fast#t={START + 2_000}")
        self.browser.wait("[...document.querySelectorAll('.about')].map(about => about.textContent.split(' · ').at(-1)).join()"
                          " === 'changed: 100 % of the picture,changed: 20 % of the picture'")

    def test_session_without_numbers_has_no_curve_and_no_buttons(self):
        self.open_session("single-frame")
        self.shown(0)
        self.assertEqual(self.browser.find("#changed").text, "not known")
        self.assertTrue(self.browser.find("#timeline").get_attribute("aria-valuetext").endswith("from the start"))
        for name in ["#changes", "#change-key"]:
            self.assertFalse(self.browser.find(name).is_displayed())
        self.browser.press("n")
        self.browser.wait("document.getElementById('jump-text').textContent === 'The changed areas are not known.'")

    def test_controls_fit_on_a_phone(self):
        self.addCleanup(self.browser.look)
        self.browser.look(width=375, height=812)
        self.browser.wait("document.documentElement.scrollWidth === document.documentElement.clientWidth")
        tops = self.browser.run("""return ['change-previous', 'change-next', 'rate'].map(
            id => document.getElementById(id).getBoundingClientRect().top)""")
        self.assertEqual(len(set(tops)), 1, tops)


class FilmTime(PageTest):
    """The form that goes to a time of a part's film."""

    @classmethod
    def sessions(cls, output):
        painted(output, "busy", Changes.blocks, every=1_000)

    def setUp(self):
        self.browser.prepare()
        self.open_session("busy")
        self.shown(0)
        self.browser.run("document.getElementById('part').open = true")

    def choose(self, name, value):
        self.browser.run("""
            const select = document.getElementById(arguments[0]);
            select.value = arguments[1];
            select.dispatchEvent(new Event('change'));""", name, value)

    def go(self, text):
        self.browser.find("#film-time-text").clear()
        self.browser.find("#film-time-text").send_keys(text, Keys.ENTER)

    def now(self, text):
        self.browser.wait("document.getElementById('film-time-now').textContent === arguments[0]", text)

    def test_time_of_the_film_leads_to_its_picture_and_back(self):
        self.now("now 0.000 s")
        self.go("9.2")
        self.shown(9)
        self.now("now 9.200 s")
        self.browser.press(Keys.TAB, Keys.TAB)
        self.choose("part-speed", "2")
        self.now("now 4.600 s")
        self.go("0:02,75")
        self.shown(5)
        self.now("now 2.750 s")

    def test_film_without_idle_time_has_its_own_times(self):
        self.choose("part-idle", "cut")
        # The pictures 0, 3, 6 and 9 stay for more than a second: 0 to 2, 3 to 5, 6 to 9, 9 to 12.
        for text, frame in [("0:00:05.2", 9), ("4.5", 6), ("1", 2)]:
            self.go(text)
            self.shown(frame)
            self.now(f"now {float(text.split(':')[-1]):.3f} s")
        # Left out: the second picture after the one at 6 s. Its place in the film is the next change.
        self.browser.run("location.hash = `t=${arguments[0]}`", START + 8_000)
        self.shown(8)
        self.now("now 5.000 s")
        self.browser.run("""
            const {fetch} = window;
            window.fetch = (path, ...rest) => { window.asked = path; return fetch(path, ...rest); };
            document.getElementById('download-part').click();""")
        self.browser.wait("window.asked?.startsWith('session.mp4') && asked.endsWith('&idle=cut')")

    def test_time_outside_and_text_that_is_no_time_are_answered(self):
        for text, answer in [("12", "The film ends at 12.000 s."), ("1:00:00", "The film ends at 12.000 s."),
                             ("soon", "Write a time of the film in seconds, or as 1:02.5."),
                             ("", "Write a time of the film in seconds, or as 1:02.5.")]:
            with self.subTest(text=text):
                self.go(text)
                self.browser.wait("document.getElementById('said').textContent === arguments[0]", answer)
                self.now(answer)
                self.shown(0)
        self.browser.find("#next").click()
        self.now("now 1.000 s")

    def test_instant_outside_of_the_part_has_no_film_time(self):
        self.browser.find("#timeline").click()
        self.browser.press(Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, "i")
        self.now("now 0.000 s")
        self.browser.press(Keys.ARROW_LEFT)
        self.now("not in the film")

    def test_times_are_read_in_all_forms(self):
        for text, ms in [("62.5", 62_500), (" 1:02.5 ", 62_500), ("0:01:02,5", 62_500), ("90:00", 5_400_000), ("0", 0),
                         ("1:", None), ("-1", None), ("1e3", None), ("1:2:3:4", None)]:
            with self.subTest(text=text):
                self.assertEqual(self.browser.call("filmtime.js", f"module.readFilmTime({json.dumps(text)}) ?? null"), ms)


class Map(PageTest):
    """The map of a film, in both directions (docs/map.md)."""

    # At normal speed: film time, and capture time from START. The third piece is idle time that is shown faster; time is left
    # out before the last piece and behind it.
    pieces = [(0, 2_000, 0, 2_000), (2_000, 2_500, 2_000, 26_000), (2_500, 6_500, 26_000, 30_000),
              (6_500, 86_406_500, 50_000, 86_450_000)]
    to = 86_460_000

    def film_map(self, speed):
        def film(ms):
            return round(ms / speed, 6)
        pieces = [{"filmMs": film(a), "filmEndMs": film(b), "unixMs": START + c, "unixEndMs": START + d}
                  for a, b, c, d in self.pieces]
        return {"format": "film-map/1", "speed": speed, "fromMs": START, "toMs": START + self.to, "pieces": pieces}

    def tick(self, speed, since):
        """Returns the tick of an instant, by integers."""
        a, b, c, d = next(piece for piece in self.pieces if since < piece[3])
        since = max(since, c)
        return (a * (d - c) + (since - c) * (b - a)) * 90_000 // ((d - c) * round(speed * 1000))

    def asked(self, speed, expression, values):
        """Returns the results of an expression with `map` and each `value`."""
        return self.browser.call("filmmap.js", f"""(map => {json.dumps(values)}.map(value => {expression} ?? null))(
            new module.FilmMap({json.dumps(self.film_map(speed))}))""")

    def setUp(self):
        self.browser.driver.get(f"{self.serving.url}/")

    def test_instants_have_their_exact_film_time_and_come_back(self):
        generator = random.Random(47)
        for speed in [1, 2, 0.25, 1.337, 7.123, 100]:
            with self.subTest(speed=speed):
                instants = [generator.randrange(86_450_000) for _ in range(10_000)]
                instants += [edge + step for piece in self.pieces for edge in piece[2:] for step in (-1, 0, 1)]
                instants = [since for since in instants if 0 <= since < 86_450_000]
                ticks = self.asked(speed, "Math.round(map.filmMs(value) * 90)", [START + since for since in instants])
                self.assertEqual(ticks, [self.tick(speed, since) for since in instants])
                back = self.asked(speed, "map.unixMs(map.filmMs(value))", [START + since for since in instants])
                for since, instant in zip(instants, back):
                    latest = instant - START
                    # The latest instant with the same tick.
                    self.assertEqual(self.tick(speed, latest), self.tick(speed, since))
                    self.assertTrue(latest >= since or not any(c <= since < d for _, _, c, d in self.pieces))
                    if any(c <= latest + 1 < d for _, _, c, d in self.pieces):
                        self.assertGreater(self.tick(speed, latest + 1), self.tick(speed, since))

    def test_time_that_is_left_out_is_one_moment(self):
        self.assertEqual(self.asked(1, "map.filmMs(value)", [START + 30_000, START + 40_000, START + 50_000]), [6_500] * 3)
        self.assertEqual(self.asked(2, "map.filmMs(value)", [START + 86_450_000, START + self.to - 1]), [43_203_250] * 2)
        self.assertEqual(self.asked(1, "map.unixMs(value)", [6_499, 6_500]), [START + 29_999, START + 50_000])

    def test_outside_of_the_film_there_is_nothing(self):
        self.assertEqual(self.asked(1, "map.filmMs(value)", [START - 1, START + self.to]), [None, None])
        self.assertEqual(self.asked(1, "map.unixMs(value)", [-1, 86_406_500]), [None, None])
        self.assertEqual(self.browser.call("filmmap.js", """(map => [map.durationMs, map.filmMs(0) ?? null, map.unixMs(0) ?? null])(
            new module.FilmMap({speed: 1, fromMs: 0, toMs: 0, pieces: []}))"""), [0, None, None])


if __name__ == "__main__":
    unittest.main()
