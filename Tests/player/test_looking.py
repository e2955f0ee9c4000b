"""Tests what the pages do for the one who looks: states, local times, the jump, previews, the full screen, and sessions that
go on while the page is open."""

import json
import subprocess
import time
import unittest

from selenium import webdriver
from selenium.webdriver.common.keys import Keys

import browser
from browser import PageTest
from test_touches import event, touched

START = 1_767_859_512_340


def now():
    return int(time.time() * 1000)


class States(PageTest):
    """The state of a session in words, by the server's clock."""

    # The browser's clock is five days late.
    browser_options = {"before": "const real = Date.now; Date.now = () => real() - 5 * 86400000;"}

    @classmethod
    def sessions(cls, output):
        browser.generated(output, "going-on", 3, start=now() - 20_000)
        browser.generated(output, "stopped", 3, start=now() - 3 * 86_400_000 - 60_000)
        browser.generated(output, "ahead", 3, start=now() + 7_200_000 + 60_000)
        browser.generated(output, "over", 3, start=now() - 20_000, final=True)

    wanted = {"going-on": "live", "stopped": "last picture 3 days ago", "over": "ended",
              "ahead": "last picture 2 hours ahead of the server's clock"}

    def test_list_and_page_say_the_state(self):
        self.browser.open(self.serving.url + "/")
        states = self.browser.run("""
            return Object.fromEntries([...document.querySelectorAll('.session')].map(
              row => [row.querySelector('h3').textContent, row.querySelector('.state').textContent]))""")
        self.assertEqual(states, self.wanted)
        for session, wanted in self.wanted.items():
            self.open_session(session)
            self.assertEqual(self.browser.find("#badge").text, wanted)

    def test_age_is_said_in_the_unit_that_fits(self):
        minute, hour, day = 60_000, 3_600_000, 86_400_000
        for ms, text in [(minute, "1 minute"), (5 * minute, "5 minutes"), (119 * minute, "119 minutes"), (2 * hour, "2 hours"),
                         (47 * hour, "47 hours"), (2 * day, "2 days"), (60 * day, "60 days"), (61 * day, "2 months"),
                         (800 * day, "2 years")]:
            self.assertEqual(self.browser.call("state.js", f"module.span({ms})"), text)

    def test_live_ends_two_minutes_after_the_last_picture(self):
        for age, kind in [(120_000, "live"), (120_001, "quiet"), (-120_000, "live"), (-120_001, "quiet")]:
            state = f"module.state({{complete: false, endMs: 1000}}, {1000 + age}).kind"
            self.assertEqual(self.browser.call("state.js", state), kind)


class Zones(PageTest):
    """Times are local, with UTC beside them."""

    browser_options = {"zone": "America/New_York"}

    @classmethod
    def sessions(cls, output):
        browser.encode(output, "gap")
        # In New York it is still the day before.
        browser.generated(output, "night", 2, start=1_767_841_200_000)

    def setUp(self):
        self.browser.prepare(**self.browser_options)

    def test_page_of_a_session_shows_local_time_and_utc(self):
        self.open_session("gap")
        self.shown(0)
        text = lambda id: self.browser.find(f"#{id}").text
        self.assertEqual(text("captured"), "2026-01-08 03:05:12.340 GMT-5")
        self.assertEqual(text("captured-utc"), "08:05:12.340 UTC")
        self.assertEqual(text("now"), "2026-01-08 03:05:12.340 GMT-5 · +0.000 s")
        self.assertEqual(text("now-utc"), "08:05:12.340 UTC")
        self.assertIn("America/New_York", text("zone"))
        self.assertIn("03:05:19.340", text("notes"))
        self.assertIn("03:05:12.340 GMT-5", self.browser.find("#timeline").get_attribute("aria-valuetext"))
        self.open_session("night")
        self.shown(0)
        self.assertEqual(text("captured"), "2026-01-07 22:00:00.000 GMT-5")
        self.assertEqual(text("captured-utc"), "2026-01-08 03:00:00.000 UTC")

    def test_list_shows_local_time_and_utc_and_finds_both(self):
        self.browser.open(self.serving.url + "/#view=rows&group=day")
        lines = self.browser.run("return [...document.querySelectorAll('.session')].map(row => row.innerText)")
        self.assertIn("2026-01-08 03:05:12 GMT-5", lines[0])
        self.assertIn("08:05:12 UTC", lines[0])
        titles = self.browser.run("return [...document.querySelectorAll('.group h2')].map(title => title.textContent)")
        self.assertEqual(titles, ["Thu 2026-01-08", "Wed 2026-01-07"])
        for words in ["22:00", "2026-01-08 03:00"]:
            self.browser.find("#filter").clear()
            self.browser.find("#filter").send_keys(words)
            self.browser.wait("[...document.querySelectorAll('.session h3')].map(name => name.textContent).join() === 'night'")

    def test_where_local_time_is_utc_it_is_shown_once(self):
        self.browser.prepare()
        self.open_session("gap")
        self.shown(0)
        self.assertEqual(self.browser.find("#captured").text, "2026-01-08 08:05:12.340 UTC")
        self.assertEqual(self.browser.find("#captured-utc").text, "")

    def test_instants_are_read_in_all_their_forms(self):
        for text, ms in [("1767859512340", START), (" 1767859512 ", START - 340), ("2026-01-08T08:05:12.340Z", START),
                         ("2026-01-08 08:05:12.340 UTC", START), ("2026-01-08T03:05:12.340", START),
                         ("2026-01-08 09:05:12,340+0100", START), ("2026-01-08T08:05:12.340123456Z", START),
                         ("2026-01-08T09:05+01", START - 12_340), ("2026-01-08", START - 12_340 - 3 * 3_600_000 - 300_000),
                         ("08:05", None), ("tomorrow", None), ("2026-13-01T00:00Z", None), ("12", None)]:
            with self.subTest(text=text):
                self.assertEqual(self.browser.call("time.js", f"module.readInstant({json.dumps(text)})"), ms)


class Jumps(PageTest):
    @classmethod
    def sessions(cls, output):
        browser.encode(output, "gap", "exact-1fps")

    browser_options = {"zone": "Europe/Berlin"}

    def write(self, text):
        """Writes a date and time, and presses Enter."""
        self.browser.press("g")
        self.assertEqual(self.browser.run("return document.activeElement.id"), "jump-time")
        self.browser.run("document.activeElement.value = arguments[0]", text)
        self.browser.press(Keys.ENTER)

    def paste(self, text):
        self.browser.run("""
            const data = new DataTransfer();
            data.setData('text/plain', arguments[0]);
            const input = document.getElementById('jump-time');
            input.focus();
            input.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, cancelable: true, bubbles: true}));""", text)

    def answer(self, *words):
        text = self.browser.find("#jump-text").text
        for part in words:
            self.assertIn(part, text)

    def test_date_and_time_are_written_in_the_local_zone(self):
        self.open_session("exact-1fps")
        self.shown(0)
        self.browser.press("g")
        self.assertEqual(self.browser.run("return document.activeElement.value"), "2026-01-08T09:05:12.34")
        self.write("2026-01-08T09:05:19.400")
        self.assert_shown(7)
        self.assertEqual(self.browser.find("#jump-text").text, "")
        self.assertEqual(self.browser.run("return document.activeElement.id"), "timeline")

    def test_unix_milliseconds_and_iso_8601_are_pasted(self):
        self.open_session("exact-1fps")
        self.shown(0)
        for text, frame in [(str(START + 4_000), 4), ("2026-01-08T08:05:21.500Z", 9), ("2026-01-08 09:05:14.5", 2)]:
            self.paste(text)
            self.assert_shown(frame)

    def test_instant_outside_leads_to_the_nearest_picture_and_says_so(self):
        self.open_session("exact-1fps")
        self.shown(0)
        self.write("2026-01-09T09:05:19.400")
        self.assert_shown(11)
        self.answer("ends earlier", "last one, 2026-01-08 09:05:23.340 CET")
        self.write("2026-01-07T09:05:19.400")
        self.assert_shown(0)
        self.answer("begins later", "first one, 2026-01-08 09:05:12.340 CET")
        # A step takes the answer away.
        self.browser.press(Keys.ARROW_RIGHT)
        self.browser.wait("document.getElementById('jump-text').textContent === ''")

    def test_instant_in_a_gap_leads_to_its_end_and_says_so(self):
        self.open_session("gap")
        self.shown(0)
        self.write("2026-01-08T09:05:22.000")
        self.assert_shown(3)
        self.answer("Nothing was recorded from 09:05:19.340 to 09:05:26.340")
        # No picture is behind the gap at the end.
        self.write("2026-01-08T09:05:34.000")
        self.assert_shown(4)
        self.answer("last one")

    def test_text_that_is_no_instant_is_refused(self):
        self.open_session("exact-1fps")
        self.shown(0)
        self.browser.press("g")
        self.browser.run("document.activeElement.value = ''")
        self.browser.press(Keys.ENTER)
        self.answer("Write a date and time")
        self.shown(0)


class Screens(PageTest):
    """The full screen, and the order on a phone."""

    @classmethod
    def sessions(cls, output):
        touched(output, "touched", [event(500, "down", 45, 80)])
        browser.encode(output, "gap", "exact-1fps")

    def setUp(self):
        self.browser.look()

    def tearDown(self):
        self.browser.run("if (document.fullscreenElement) return document.exitFullscreen()")
        self.browser.wait("!document.fullscreenElement")

    def test_full_screen_has_the_picture_and_the_touches(self):
        self.open_session("touched", f"#t={START + 1_500}")
        self.shown(1)
        self.browser.press("f")
        self.browser.wait("document.fullscreenElement?.id === 'stage'")
        self.browser.wait("document.getElementById('full').getAttribute('aria-pressed') === 'true'")
        self.browser.wait("document.getElementById('stage').getBoundingClientRect().height === innerHeight && "
                          "Math.abs(document.getElementById('screen').getBoundingClientRect().height - innerHeight) < 1")
        layer, screen = self.browser.run("""
            return ['touch-layer', 'screen'].map(id => document.getElementById(id).getBoundingClientRect().toJSON())""")
        self.assertEqual(layer, screen)
        self.assertTrue(self.browser.find("#touch-layer").is_displayed())
        # The keys work, and the picture follows.
        self.browser.press(Keys.ARROW_RIGHT)
        self.assert_shown(2)
        self.browser.press("f")
        self.browser.wait("!document.fullscreenElement")
        self.browser.find("#full").click()
        self.browser.wait("document.fullscreenElement?.id === 'stage'")

    def test_picture_comes_first_on_a_phone(self):
        self.browser.look(375, 667)
        self.open_session("gap")
        self.shown(0)
        tops = self.browser.run("""
            return ['#stage', '.deck', '#frame-title', '.share', '#notes-card'].map(
              part => document.querySelector(part).getBoundingClientRect().top)""")
        self.assertEqual(tops, sorted(tops))
        self.assertLess(tops[0], 667 / 6)
        stage, play = self.browser.run("""
            return ['stage', 'play'].map(id => document.getElementById(id).getBoundingClientRect().bottom)""")
        self.assertLess(stage, play)
        self.assertLess(play, 667)

    def test_notes_are_shown_only_where_there_are_some(self):
        self.open_session("exact-1fps")
        self.shown(0)
        self.assertFalse(self.browser.find("#notes-card").is_displayed())
        self.open_session("gap")
        self.shown(0)
        self.assertTrue(self.browser.find("#notes-card").is_displayed())


class Previews(PageTest):
    @classmethod
    def sessions(cls, output):
        browser.encode(output, "exact-1fps", "gap")

    PREVIEW = """
        (() => {
          const preview = document.getElementById('preview');
          if (preview.hidden || preview.closest('[hidden]')) return null;
          const context = preview.getContext('2d');
          let number = 0;
          for (let bit = 0; bit < 8; bit++) {
            const [x, y] = [preview.width * (2 * bit + 1) / 16, preview.height * 3 / 8].map(Math.floor);
            if (context.getImageData(x, y, 1, 1).data[1] > 127) number |= 1 << bit;
          }
          return number;
        })()"""

    def setUp(self):
        self.open_session("exact-1fps")
        self.shown(0)
        self.browser.requests()

    def hover(self, seconds, of=12):
        canvas = self.browser.find("#map")
        offset = round(canvas.size["width"] * (seconds / of - 0.5))
        webdriver.ActionChains(self.browser.driver, duration=0).move_to_element_with_offset(canvas, offset, 0).perform()

    def asked(self):
        return [url for url in self.browser.requests() if "/thumbnail.jpg?t=" in url]

    def test_picture_under_the_pointer_is_shown(self):
        self.hover(7.5)
        self.browser.wait(f"{self.PREVIEW} === 7")
        self.assertEqual([url.split("t=")[1] for url in self.asked()], [str(START + 7_000)])
        # It is kept.
        self.hover(3.5)
        self.browser.wait(f"{self.PREVIEW} === 3")
        self.hover(7.6)
        self.browser.wait(f"{self.PREVIEW} === 7")
        self.assertEqual(len(self.asked()), 1)
        # The picture itself stays where it was.
        self.shown(0)

    def test_pointer_that_moves_on_asks_for_the_last_picture_only(self):
        for second in range(11):
            self.browser.run("""
                const map = document.getElementById('map');
                const {left, top, width} = map.getBoundingClientRect();
                map.dispatchEvent(new PointerEvent('pointermove', {
                  bubbles: true, clientX: left + width * (arguments[0] + 0.5) / 12, clientY: top + 40}));""", second)
        self.browser.wait(f"{self.PREVIEW} === 10")
        self.assertLess(len(self.asked()), 6)

    def test_request_is_cancelled_when_the_pointer_moves_on(self):
        self.browser.run("""
            const fetched = window.fetch;
            window.cancelled = 0;
            window.running = window.mostRunning = 0;
            window.fetch = (path, options) => {
              if (!String(path).includes('thumbnail')) return fetched(path, options);
              window.mostRunning = Math.max(mostRunning, ++window.running);
              return new Promise((resolve, reject) => options.signal.addEventListener('abort', () => {
                window.cancelled++;
                window.running--;
                reject(new DOMException('', 'AbortError'));
              }));
            };""")
        for number, second in enumerate([2.5, 5.5, 8.5]):
            self.hover(second)
            self.browser.wait("running === 1 && cancelled === arguments[0]", number)
        webdriver.ActionChains(self.browser.driver, duration=0).move_to_element(self.browser.find("#play")).perform()
        self.browser.wait("running === 0 && cancelled === 3")
        self.assertEqual(self.browser.run("return mostRunning"), 1)

    def test_keyboard_has_the_preview_at_the_playhead(self):
        self.browser.find("#zoom-all").send_keys(Keys.TAB)
        self.browser.wait(f"{self.PREVIEW} === 0")
        self.browser.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.browser.wait(f"{self.PREVIEW} === 2")
        self.assertIn("08:05:14.340", self.browser.find("#tip").text)
        self.browser.press(Keys.ESCAPE)
        self.assertFalse(self.browser.find("#tip").is_displayed())
        self.browser.press(Keys.ARROW_RIGHT)
        self.browser.wait(f"{self.PREVIEW} === 3")
        self.browser.press(Keys.TAB)
        self.assertFalse(self.browser.find("#tip").is_displayed())

    def test_gap_has_no_preview(self):
        self.open_session("gap")
        self.shown(0)
        self.hover(10, of=23)
        self.assertIn("gap of 7.000 s", self.browser.find("#tip").text)
        self.assertFalse(self.browser.find("#preview").is_displayed())


class Growing(PageTest):
    """A session that goes on, and whose oldest segments are removed, while the page shows it."""

    # The page looks every second, not every five.
    browser_options = {"before": """
        (wait => window.setTimeout = (action, ms, ...rest) => wait(action, ms >= 5000 ? 1000 : ms, ...rest))(setTimeout);"""}

    PICTURES = [f"exact-1fps/{number:04}.jpg" for number in range(12)]

    @classmethod
    def sessions(cls, output):
        for name in ["growing", "ending", "rolling", "early"]:
            cls.add(output, name, 0)

    @classmethod
    def add(cls, output, name, part, final=False):
        """Adds a batch of six captures."""
        pictures = (cls.PICTURES * 4)[6 * part:6 * part + 6]
        browser.generated(output, name, 6, pictures, start=START + 6_000 * part, final=final)

    def length(self):
        return self.browser.find("#timeline").get_attribute("aria-valuemax")

    def test_page_shows_what_has_come_and_plays_on(self):
        self.open_session("growing")
        self.shown(0)
        self.assertEqual(self.length(), "6000")
        self.set_rate("8")
        self.browser.press(" ")
        self.browser.wait("document.documentElement.dataset.state === 'ended'")
        self.add(self.output, "growing", 1)
        self.browser.wait("document.getElementById('total').textContent === '12'")
        # It goes on where it had waited, and waits again.
        self.browser.wait("document.documentElement.dataset.state === 'ended' && Number(document.documentElement.dataset.frame) === 11")
        self.assertEqual(self.length(), "12000")
        self.browser.press(Keys.HOME)
        self.assert_shown(0)
        self.browser.press(Keys.END)
        self.assert_shown(11)

    def test_page_says_that_the_session_has_ended_and_looks_no_more(self):
        self.open_session("ending")
        self.shown(0)
        self.add(self.output, "ending", 1, final=True)
        self.browser.wait("document.getElementById('badge').textContent === 'ended'")
        self.browser.requests()
        time.sleep(3)
        self.assertEqual([url for url in self.browser.requests() if "timeline.json" in url], [])

    def test_removed_beginning_is_said_and_the_rest_plays(self):
        self.add(self.output, "rolling", 1)
        self.open_session("rolling")
        self.shown(0)
        self.browser.press(Keys.END)
        self.assert_shown(11)
        session = self.output / "rolling"
        gone = sorted(session.glob("segment-*.json"))[:2]
        for manifest in gone:
            manifest.unlink()
            manifest.with_suffix(".mp4").unlink()
        subprocess.run([browser.WORKER, "verify", "--repair", session], stdout=subprocess.DEVNULL)
        self.add(self.output, "rolling", 2)
        self.browser.wait("document.getElementById('total').textContent === '18'")
        # The same picture is still on screen, and its address is the same.
        self.assert_shown(11)
        self.browser.press(Keys.HOME)
        self.shown(0)
        self.browser.run("document.getElementById('timeline').focus()")
        self.paste_jump(START + 1_000)
        self.assertIn("no longer kept", self.browser.find("#jump-text").text)
        self.browser.wait("Number(document.documentElement.dataset.frame) >= arguments[0]", 5)
        self.browser.press(Keys.END)
        self.assert_shown_number(17, 17 % 12)
        # Loaded again, the page begins where the session does.
        self.browser.driver.refresh()
        self.browser.wait("document.documentElement.dataset.picture === 'ready'")
        self.assertLess(int(self.browser.run("return document.getElementById('total').textContent")), 18)

    def paste_jump(self, ms):
        self.browser.run("""
            const data = new DataTransfer();
            data.setData('text/plain', String(arguments[0]));
            document.getElementById('jump-time').dispatchEvent(
              new ClipboardEvent('paste', {clipboardData: data, cancelable: true, bubbles: true}));""", ms)

    def assert_shown_number(self, frame, number):
        self.assertEqual(self.browser.when(browser.PAINTED, "pictureNumber()", frame, "ready"), number)

    def test_earlier_batch_loads_the_page_again_at_its_instant(self):
        self.open_session("early")
        self.shown(0)
        self.browser.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.shown(2)
        self.browser.wait("location.hash === '#t=1767859514340'")
        browser.generated(self.output, "early", 6, self.PICTURES[6:], start=START - 6_000)
        self.browser.wait("document.getElementById('total').textContent === '12'")
        self.assert_shown_number(8, 2)


if __name__ == "__main__":
    unittest.main()
