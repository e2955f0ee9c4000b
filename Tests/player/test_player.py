"""Tests the page of a session, in headless Chromium. The tests read the painted number off the picture."""

import unittest
import urllib.request
from datetime import datetime, timezone

from selenium import webdriver
from selenium.webdriver.common.keys import Keys

import browser
from browser import PageTest

# One session of each kind, or all with TEST_EXTENT=full.
FIXTURES = ["jittered", "gap", "rotation", "single-frame"]
if browser.IS_FULL:
    FIXTURES += ["exact-1fps", "irregular-3fps", "on-change"]


class Frames(PageTest):
    """Every capture can be reached, and the page shows its picture."""

    @classmethod
    def sessions(cls, output):
        browser.encode(output, *FIXTURES, "odd-size")

    def test_a_link_to_any_capture_shows_it(self):
        timelines = {session: self.timeline(session) for session in FIXTURES}
        for number in reversed(range(max(map(len, timelines.values())))):
            # Takes another session each time: a page load costs least if the page changes.
            for session, captures in timelines.items():
                if number in (range(len(captures)) if browser.IS_FULL else self.sample(captures)):
                    with self.subTest(session=session, number=number):
                        self.open_session(session, f"#t={captures[number]['timeMs']}")
                        self.assert_shown(number)

    @staticmethod
    def sample(captures):
        """Returns one capture of each kind: one inside a segment, the first one of the last segment, the last one.

        The other two tests of this class visit every capture."""
        opening = next(number for number, capture in enumerate(captures)
                       if capture["segment"] == captures[-1]["segment"])
        return {min(1, len(captures) - 1), opening, len(captures) - 1}

    def test_a_seek_to_any_capture_shows_it(self):
        for session in FIXTURES:
            self.open_session(session)
            captures = self.timeline(session)
            # Seeks forwards and backwards, over long and short distances.
            order = [number for pair in zip(range(len(captures)), reversed(range(len(captures)))) for number in pair]
            for number in order:
                with self.subTest(session=session, number=number):
                    self.browser.run("location.hash = `t=${arguments[0]}`", captures[number]["timeMs"])
                    self.assert_shown(number)

    def test_arrow_keys_visit_every_capture_once_and_back(self):
        for session in FIXTURES:
            self.open_session(session)
            captures = self.timeline(session)
            self.shown(0)
            forwards = list(range(1, len(captures)))
            for key, numbers in [(Keys.ARROW_RIGHT, forwards), (Keys.ARROW_LEFT, list(reversed(forwards))[1:] + [0])]:
                for number in numbers if len(captures) > 1 else []:
                    with self.subTest(session=session, number=number):
                        self.browser.press(key)
                        seen = self.browser.when(browser.PAINTED, """{
                            picture: pictureNumber(), hash: location.hash, texts: Object.fromEntries(
                              ['number', 'total', 'captured', 'offset', 'hold', 'source'].map(
                                id => [id, document.getElementById(id).textContent]))}""", number, "ready")
                        self.assertEqual(seen["picture"], number)
                        self.assertEqual(seen["hash"], f"#t={captures[number]['timeMs']}")
                        self.assertEqual(seen["texts"], self.read_out(captures, number))
            # A further step changes nothing.
            self.browser.press(Keys.ARROW_LEFT)
            self.shown(0)
            self.browser.press(Keys.END, Keys.ARROW_RIGHT)
            self.shown(len(captures) - 1)

    @staticmethod
    def read_out(captures, number):
        """Returns the text that the page must show for a capture."""
        capture = captures[number]
        offset, hold = capture["timeMs"] - captures[0]["timeMs"], capture["endMs"] - capture["startMs"]
        second, rest = divmod(capture["timeMs"], 1000)
        return {
            "number": str(number + 1), "total": str(len(captures)), "source": capture["source"],
            "captured": f"{datetime.fromtimestamp(second, timezone.utc):%Y-%m-%d %H:%M:%S}.{rest:03} UTC",
            "offset": f"+{offset // 1000}.{offset % 1000:03} s", "hold": f"{hold // 1000}.{hold % 1000:03} s"}

    def test_an_added_column_and_row_are_cut_off(self):
        self.open_session("odd-size")
        self.shown(0)
        box, video = self.browser.run("""
            return ['screen', 'video'].map(id => document.getElementById(id).getBoundingClientRect())
              .map(box => [box.width, box.height])""")
        scale = box[1] / 321
        self.assertAlmostEqual(box[0], 181 * scale, places=1)
        self.assertAlmostEqual(video[0], 182 * scale, places=1)
        self.assertAlmostEqual(video[1], 322 * scale, places=1)

    def test_rotation_changes_the_picture_and_not_the_layout(self):
        def places():
            return self.browser.run("""
                return ['stage', 'timeline', 'play'].map(id => document.getElementById(id).getBoundingClientRect().toJSON())""")

        def shape():
            box = self.browser.find("#screen").size
            return round(box["width"] / box["height"], 2)

        self.open_session("rotation")
        self.shown(0)
        before = places()
        self.assertEqual(shape(), 0.56)
        for number in range(1, 4):
            self.browser.press(".")
            self.shown(number)
        self.assertEqual(shape(), 1.78)
        self.assertEqual(places(), before)
        notes = [note.text.splitlines()[0] for note in self.browser.driver.find_elements("css selector", ".note")]
        self.assertEqual(notes, ["Rotated", "Rotated"])


class Playing(PageTest):
    """Sessions play to their end; the player skips gaps in the recording."""

    @classmethod
    def sessions(cls, output):
        browser.encode(output, "exact-1fps", "gap", "rotation")

    def play_through(self, session, rate):
        """Plays to the end. Returns an entry for each repaint, and whether the machine dropped pictures meanwhile."""
        self.open_session(session)
        self.shown(0)
        self.set_rate(rate)
        self.browser.run("""
            const page = document.documentElement.dataset;
            window.seen = [];
            window.longestMs = 0;
            let before = performance.now();
            (function look() {
              const now = performance.now();
              window.longestMs = Math.max(window.longestMs, now - before);
              before = now;
              window.seen.push({state: page.state, frame: Number(page.frame), picture: page.picture,
                                position: Number(page.position)});
              if (page.state !== 'ended') requestAnimationFrame(look);
            })();""")
        self.browser.press(" ")
        # This reads the page after its end: the loop above may run later than the end.
        self.browser.wait("seen.at(-1).state === 'ended'")
        seen, longest, dropped = self.browser.run("""
            return [seen, longestMs, document.querySelector('video').getVideoPlaybackQuality().droppedVideoFrames]""")
        return seen, dropped > 0 or longest > 60

    def watch(self, session, rate, check, missing):
        """Plays until nothing is missing. Plays again only if the machine dropped pictures meanwhile.

        `check` judges each attempt, and must hold on a busy machine. `missing` returns what an attempt lacks."""
        for attempt in range(1, 9):
            seen, is_disturbed = self.play_through(session, rate)
            check(seen)
            lacks = missing(seen)
            if not lacks or not is_disturbed:
                break
        self.assertFalse(lacks, f"in attempt {attempt}")

    def test_a_session_plays_to_its_end(self):
        for session in ["exact-1fps", "rotation"]:
            with self.subTest(session=session):
                captures = self.timeline(session)

                def check(seen):
                    frames = [entry["frame"] for entry in seen]
                    self.assertEqual(frames, sorted(frames))
                    self.assertLessEqual(set(frames), set(range(len(captures))))
                    self.assertEqual(seen[-1]["position"], captures[-1]["endMs"] - captures[0]["startMs"])

                def missing(seen):
                    return set(range(len(captures))) - {entry["frame"] for entry in seen if entry["picture"] == "ready"}
                self.watch(session, "2" if browser.IS_FULL else "4", check, missing)

    def test_play_skips_a_gap_but_not_the_picture_before_it(self):
        gaps = [(gap["startMs"], gap["endMs"]) for gap in self.index("gap")["gaps"]]
        start = self.index("gap")["startMs"]

        def check(seen):
            for entry in seen[:-1]:
                self.assertFalse(any(first < start + entry["position"] < end for first, end in gaps), entry)
            self.assertLessEqual({entry["frame"] for entry in seen}, set(range(5)))

        def missing(seen):
            lacks = set(range(5)) - {entry["frame"] for entry in seen}
            # The capture before the gap stays on screen for five seconds, and the player must not skip any of them.
            held = max((entry["position"] for entry in seen if entry["frame"] == 2), default=0)
            return lacks or (held if held <= 6_000 else None)
        self.watch("gap", "4", check, missing)

    def test_session_plays_again_after_its_end_and_pauses(self):
        self.play_through("gap", "16")
        # The second play must not end before the test pauses it.
        self.set_rate("1")
        self.browser.press(" ")
        self.browser.wait("document.documentElement.dataset.state === 'playing'")
        self.browser.press(" ")
        self.browser.wait("document.documentElement.dataset.state === 'paused'")

    def test_seek_into_a_gap_and_out_of_it(self):
        start = self.index("gap")["startMs"]
        for key, number in [(Keys.ARROW_RIGHT, 3), (Keys.ARROW_LEFT, 2), (Keys.PAGE_UP, 4), (Keys.PAGE_DOWN, 0)]:
            with self.subTest(key=key):
                self.open_session("gap", f"#t={start + 10_000}")
                self.browser.wait("document.documentElement.dataset.picture === 'gap'")
                self.assertIn("7.000 s", self.browser.find("#message").text)
                self.browser.press(key)
                self.assert_shown(number)
        self.open_session("gap", f"#t={start + 10_000}")
        # The player may have passed the capture after the gap before the test reads the page.
        self.browser.run("""
            window.after = [];
            const page = document.documentElement.dataset;
            new MutationObserver(() => page.picture !== 'gap' && after.push(Number(page.frame)))
              .observe(document.documentElement, {attributes: true});""")
        self.browser.press(" ")
        self.assertEqual(self.browser.wait("after.length && [after[0]]"), [3])
        self.browser.wait("document.documentElement.dataset.picture === 'ready'")


class Damage(PageTest):
    """The page names what it cannot show, and shows everything else."""

    @classmethod
    def sessions(cls, output):
        browser.encode(output, "exact-1fps", "corrupt-frames", "jittered", "gap", "rotation", "irregular-3fps")

    @classmethod
    def damage(cls, output):
        cls.gone = sorted((output / "irregular-3fps").glob("segment-*.mp4"))[1]
        cls.gone.unlink()
        cls.gone.with_suffix(".json").unlink()
        sorted((output / "rotation").glob("segment-*.mp4"))[0].unlink()
        cls.lost = sorted((output / "exact-1fps").glob("segment-*.mp4"))[1]
        cls.lost.unlink()
        for path in (output / "gap").glob("segment-*.mp4"):
            path.unlink()

    def test_a_missing_segment_is_named_and_the_rest_can_be_stepped(self):
        self.open_session("exact-1fps")
        self.shown(0)
        for number in range(1, 12):
            self.browser.press(Keys.ARROW_RIGHT)
            if 5 <= number < 10:
                self.shown(number, "missing")
                self.assertIn(self.lost.name, self.browser.find("#message").text)
                self.assertIn("verify", self.browser.find("#message").text)
            else:
                self.assert_shown(number)
                self.assertFalse(self.browser.find("#message").is_displayed())
        self.assertIn(self.lost.name, self.browser.find("#notes").text)

    def test_a_missing_segment_is_played_over(self):
        self.open_session("exact-1fps")
        self.shown(0)
        self.browser.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.shown(3)
        self.set_rate("4")
        self.browser.press(" ")
        self.browser.wait("document.documentElement.dataset.state === 'ended'")
        self.assert_shown(11)

    def test_a_missing_first_picture_and_a_session_without_any(self):
        self.open_session("gap")
        self.shown(0, "missing")
        self.browser.press(Keys.ARROW_RIGHT)
        self.shown(1, "missing")
        self.browser.press(" ")
        self.browser.wait("document.documentElement.dataset.state === 'ended'")

    def test_without_the_first_segment_all_others_are_shown(self):
        self.open_session("rotation")
        self.shown(0, "missing")
        for number in range(1, 8):
            self.browser.press(".")
            if number >= 3:
                self.assert_shown(number)
            else:
                self.shown(number, "missing")

    def test_refused_frames_are_listed_with_their_reasons(self):
        self.open_session("corrupt-frames")
        notes = self.browser.find("#notes").text
        for words in ["1767859513340.jpg", "invalid data", "an empty file"]:
            self.assertIn(words, notes)
        # The capture times that their names state.
        for instant in ["08:05:13.340", "08:05:15.340"]:
            self.assertIn(instant, notes)

    def test_missing_segment_and_manifest_are_not_shown_as_a_recording_gap(self):
        self.open_session("irregular-3fps")
        self.shown(0)
        notes = self.browser.find("#notes").text
        self.assertRegex(notes, r"part 2 of \d is missing")
        self.assertNotIn("nothing was recorded", notes)

    def test_film_that_cannot_be_made_shows_the_reason(self):
        self.open_session("exact-1fps")
        self.shown(0)
        self.browser.find("#download").click()
        self.browser.wait("document.getElementById('message-text').textContent.includes(arguments[0])", self.lost.name)
        self.assertTrue(self.browser.find("#message").is_displayed())

    def test_url_of_an_unknown_session_shows_an_error(self):
        self.open_session("nobody")
        self.assertEqual(self.browser.run("return document.documentElement.dataset.state"), "failed")
        self.assertIn("no session nobody", self.browser.find("#message").text)
        # The page shows and offers nothing else.
        for selector in ["#download", "#link", "#picture", "#beside", "#full", ".side", ".deck"]:
            self.assertFalse(self.browser.find(selector).is_displayed(), selector)

    def test_session_that_cannot_be_loaded_shows_the_reason(self):
        self.block("*timeline.json")
        self.open_session("jittered")
        self.assertEqual(self.browser.run("return document.documentElement.dataset.state"), "failed")
        self.assertIn("does not answer", self.browser.find("#message").text)

    def block(self, *urls):
        """Blocks these URLs, as if the network were down."""
        self.browser.command("Network.enable")
        self.browser.command("Network.setBlockedURLs", urls=urls)
        self.addCleanup(self.browser.command, "Network.setBlockedURLs", urls=[])

    def test_page_retries_while_the_server_is_down(self):
        self.block("*.m4s")
        self.open_session("jittered")
        self.shown(0, "missing")
        self.assertIn("does not answer", self.browser.find("#message").text)
        self.browser.command("Network.setBlockedURLs", urls=[])
        self.browser.find("#retry").click()
        self.assert_shown(0)


class Undecodable(PageTest):
    """The player skips a segment that the browser cannot decode, and creates a new media source afterwards."""

    broken = 1_767_859_517_340
    browser_options = {"before": """
        const fetched = window.fetch;
        window.fetch = (path, ...rest) => String(path).startsWith('segment-%d')
          ? Promise.resolve(new Response(new Uint8Array(5_000).fill(9))) : fetched(path, ...rest);""" % broken}

    @classmethod
    def sessions(cls, output):
        browser.encode(output, "exact-1fps")

    def test_all_others_are_shown_and_play(self):
        self.open_session("exact-1fps")
        for number in range(12):
            if 5 <= number < 10:
                self.shown(number, "missing")
            else:
                self.assert_shown(number)
            self.browser.press(Keys.ARROW_RIGHT)
        self.browser.press(Keys.PAGE_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.shown(4)
        self.set_rate("4")
        self.browser.press(" ")
        self.browser.wait("document.documentElement.dataset.state === 'ended'")
        self.assert_shown(11)


class Controls(PageTest):
    """Tests keys, the pointer, and the text for screen readers."""

    @classmethod
    def sessions(cls, output):
        browser.encode(output, "exact-1fps", "gap")

    def setUp(self):
        self.open_session("exact-1fps")
        self.shown(0)

    def test_every_control_is_reached_by_tab_and_shows_it(self):
        reached = []
        for _ in range(40):
            self.browser.press(Keys.TAB)
            name, outline = self.browser.run("""
                const element = document.activeElement;
                return [element.id || element.textContent.trim(), getComputedStyle(element).outlineStyle]""")
            if element_is_page(self.browser):
                break
            reached.append(name)
            self.assertEqual(outline, "solid", name)
        for name in ["Sessions", "link", "picture", "download", "beside", "full", "jump-time", "Go", "zoom-out", "zoom-in", "zoom-all", "timeline", "back", "previous",
                     "play", "next", "forward", "change-previous", "change-next", "rate", "Part", "Keys"]:
            self.assertIn(name, reached)

    def test_each_key_seeks_to_its_target(self):
        for key, number in [(Keys.PAGE_UP, 10), (Keys.ARROW_LEFT, 9), (Keys.HOME, 0), (Keys.END, 11), (Keys.ARROW_DOWN, 1),
                            (Keys.ARROW_UP, 11), (Keys.PAGE_DOWN, 1), (".", 2), (",", 1)]:
            self.browser.press(key)
            self.shown(number)
        webdriver.ActionChains(self.browser.driver).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT).key_up(
            Keys.SHIFT).perform()
        self.shown(11)

    def test_a_button_keeps_its_own_key(self):
        self.browser.run("document.getElementById('next').focus()")
        self.browser.press(" ")
        self.shown(1)
        self.browser.press(Keys.ENTER)
        self.shown(2)
        self.assertEqual(self.browser.run("return document.documentElement.dataset.state"), "paused")

    def copying(self, body):
        self.browser.run("Object.defineProperty(navigator, 'clipboard', {configurable: true, "
                         f"value: {{writeText: async text => {{ {body} }}}}}})")

    def test_link_to_the_picture_on_screen_is_copied(self):
        self.copying("window.copied = text")
        self.browser.press(Keys.ARROW_RIGHT)
        self.shown(1)
        self.browser.press("c")
        self.browser.wait("window.copied && document.getElementById('said').textContent === 'Link to the picture of 08:05:13 copied.'")
        link = self.browser.run("return copied")
        self.assertEqual(link, f"{self.serving.url}/sessions/exact-1fps/frame.jpg?t=1767859513340")
        with urllib.request.urlopen(link) as answer:
            self.assertEqual((answer.headers["Content-Type"], answer.read(2)), ("image/jpeg", b"\xff\xd8"))
        self.assertEqual(self.browser.find("#picture-text").text, "Link to the picture of 08:05:13 copied")
        self.browser.wait("document.getElementById('picture-text').textContent === 'a JPEG, for a ticket'")

    def test_link_to_the_page_names_its_instant(self):
        self.copying("window.copied = text")
        self.browser.press(Keys.ARROW_RIGHT)
        self.shown(1)
        self.assertEqual(self.browser.find("#link").text.split("\n"), ["Copy link", "to this page at 08:05:13"])
        self.browser.find("#link").click()
        self.browser.wait("window.copied && document.getElementById('said').textContent === 'Link to 08:05:13 copied.'")
        self.assertTrue(self.browser.run("return copied").endswith("#t=1767859513340"))
        self.assertEqual(self.browser.find("#link-text").text, "Link to 08:05:13 copied")

    def test_link_to_the_picture_is_shown_where_nothing_can_be_copied(self):
        self.copying("throw new Error()")
        self.browser.find("#picture").click()
        self.browser.wait("document.getElementById('message-text').textContent.endsWith('frame.jpg?t=1767859512340')")
        self.assertTrue(self.browser.find("#message").is_displayed())
        self.browser.press(Keys.ARROW_RIGHT)
        self.browser.wait("document.getElementById('message').hidden")

    def test_gap_has_no_link_to_a_picture(self):
        self.open_session("gap", "#t=1767859522340")
        self.browser.wait("document.documentElement.dataset.picture === 'gap'")
        self.browser.press("c")
        self.browser.wait("document.getElementById('said').textContent === 'There is no picture in a gap.'")

    def test_timeline_is_a_slider_with_the_shown_time_as_its_text(self):
        self.browser.press(Keys.ARROW_RIGHT)
        self.shown(1)
        slider = self.browser.find("#timeline")
        self.assertRegex(slider.get_attribute("aria-valuetext"),
                         r"^frame 2 of 12, 08:05:13.340 UTC, 1.000 s from the start, changed: [0-9.]+ % of the picture$")
        self.assertEqual(slider.get_attribute("aria-valuemax"), "12000")
        self.browser.wait("document.getElementById('said').textContent.startsWith('frame 2 of 12')")

    def test_screen_reader_text_does_not_report_playback(self):
        self.browser.run("""
            window.said = [];
            new MutationObserver(() => window.said.push(document.documentElement.dataset.state))
              .observe(document.getElementById('said'), {childList: true, characterData: true, subtree: true});""")
        self.browser.press(" ")
        self.browser.wait("Number(document.documentElement.dataset.frame) >= 2")
        self.browser.press(" ")
        self.browser.wait("said.length > 0")
        self.assertNotIn("playing", self.browser.run("return said"))

    def test_timeline_shows_times_and_seeks(self):
        self.open_session("gap")
        self.shown(0)
        canvas = self.browser.find("#map")
        move = webdriver.ActionChains(self.browser.driver)
        # The position ten seconds into the 23 seconds is in the gap.
        move.move_to_element_with_offset(canvas, round(canvas.size["width"] * (10 / 23 - 0.5)), 0).perform()
        self.assertIn("gap of 7.000 s", self.browser.find("#tip").text)
        move.move_to_element_with_offset(canvas, round(canvas.size["width"] * (1.5 / 23 - 0.5)), 0).click().perform()
        self.assertIn("0001.jpg · captured 08:05:13.340", self.browser.find("#tip").text)
        self.assert_shown(1)

    def test_zoom_keeps_the_playhead_in_sight(self):
        for _ in range(5):
            self.browser.press("+")
        self.browser.wait("!document.getElementById('overview').hidden")
        for number in range(1, 12):
            self.browser.press(Keys.ARROW_RIGHT)
            self.shown(number)
            self.browser.wait("!document.getElementById('playhead').hidden")
        self.browser.press("0")
        self.browser.wait("document.getElementById('overview').hidden")

    def test_the_film_can_be_downloaded(self):
        link = self.browser.find("#download")
        self.assertEqual(link.get_attribute("download"), "exact-1fps.mp4")
        kind = self.browser.run("""
            return fetch(document.getElementById('download').href).then(async answer =>
              new TextDecoder().decode((await answer.arrayBuffer()).slice(4, 8)))""")
        self.assertEqual(kind, "ftyp")

    def part(self):
        """Returns the part that would be downloaded: its text, and the address that its link asks for."""
        return self.browser.run("""
            return new Promise(resolve => {
              const asked = window.fetch;
              window.fetch = path => {
                window.fetch = asked;
                resolve([document.getElementById('part-text').textContent, path]);
                return new Promise(() => {});
              };
              document.getElementById('download-part').click();
            })""")

    def test_part_between_two_marks_can_be_downloaded(self):
        start = self.index("exact-1fps")["startMs"]
        self.browser.press(".", ".")
        self.shown(2)
        self.browser.press("i")
        self.browser.wait("document.getElementById('part').open")
        self.browser.press(".", ".", ".", ".")
        self.shown(6)
        # The page has announced the new position, so that it does not replace the announcement of the part.
        self.browser.wait("document.getElementById('said').textContent.startsWith('frame 7 of 12')")
        self.browser.press("o")
        self.browser.wait("document.getElementById('said').textContent === 'Part: +2.000 s to +6.000 s'")
        self.browser.wait("!document.querySelector('.range').hidden")
        self.browser.run("document.getElementById('part-speed').value = '2'")
        text, path = self.part()
        self.assertEqual(text, "+2.000 s to +6.000 s")
        self.assertEqual(path, f"session.mp4?from={start + 2_000}&to={start + 6_000}&speed=2")
        kind, size = self.browser.run("""
            return fetch(arguments[0]).then(async answer => {
              const bytes = await answer.arrayBuffer();
              return [new TextDecoder().decode(bytes.slice(4, 8)), bytes.byteLength];
            })""", path)
        self.assertEqual(kind, "ftyp")
        self.assertGreater(size, 10_000)
        for ending in ["gif", "webp"]:
            self.browser.run(f"document.getElementById('part-format').value = '{ending}'")
            self.assertEqual(self.part()[1], path.replace("mp4", ending))

    def test_part_without_marks_is_the_visible_one_and_a_mark_replaces_the_other(self):
        start = self.index("exact-1fps")["startMs"]
        self.assertEqual(self.part()[1], f"session.mp4?from={start}&to={start + 12_000}")
        self.open_session("exact-1fps")
        self.shown(0)
        self.browser.press("+", "+")
        self.browser.wait("!document.getElementById('overview').hidden")
        self.browser.run("document.getElementById('part').open = true")
        self.browser.wait("document.getElementById('part-text').textContent.startsWith('+0.000 s to +3.00')")
        # An end before the start, and a start behind the end.
        self.browser.press(Keys.END, "i")
        self.browser.wait("document.getElementById('part-text').textContent === '+11.000 s to +12.000 s'")
        self.browser.press(Keys.HOME, ".", "o")
        self.browser.wait("document.getElementById('part-text').textContent.endsWith('to +1.000 s')")
        self.browser.press(".", ".", "i")
        self.browser.wait("document.getElementById('part-text').textContent.startsWith('+3.000 s to ')")

    def test_link_with_an_invalid_position_opens_the_session(self):
        for fragment in ["#t=", "#t=x", "#t=1", "#t=99999999999999", "#"]:
            with self.subTest(fragment=fragment):
                self.open_session("exact-1fps", fragment)
                self.browser.wait("document.documentElement.dataset.picture === 'ready'")


class Guest(PageTest):
    """The page sends no request to other origins, and the console stays empty."""

    served = FIXTURES if browser.IS_FULL else FIXTURES[1:]

    @classmethod
    def sessions(cls, output):
        browser.encode(output, *cls.served)

    def test_no_request_leaves_the_origin_and_the_console_stays_empty(self):
        # The tests share the browser: drop the requests and console messages of other tests.
        self.browser.requests()
        self.browser.complaints()
        self.browser.open(self.serving.url + "/")
        for session in self.served:
            self.open_session(session)
            self.shown(0)
        urls = [url for url in self.browser.requests() if not url.startswith(("data:", "blob:", "about:"))]
        self.assertGreater(len(urls), 2 * len(self.served))
        self.assertEqual([url for url in urls if not url.startswith(self.serving.url + "/")], [])
        self.assertEqual(self.browser.complaints(), [])


class Long(PageTest):
    """A long session: the page fetches and keeps only segments near the playhead."""

    # Eight parts with a capture each second. The full session exceeds the limit of one batch.
    batches = 8
    frames = 3600 if browser.IS_FULL else 300

    @classmethod
    def sessions(cls, output):
        pictures = [f"exact-1fps/{batch:04}.jpg" for batch in range(cls.batches)]
        if not browser.IS_FULL:
            return browser.generated(output, "long", cls.batches * cls.frames, pictures)
        for batch, picture in enumerate(pictures):
            browser.generated(output, "long", cls.frames, [picture],
                              start=1_767_859_512_340 + batch * cls.frames * 1_000)

    def fetched(self):
        return [url for url in self.browser.requests() if url.endswith(".m4s")]

    def test_only_near_segments_are_fetched_and_every_position_is_reachable(self):
        start = self.index("long")["startMs"]
        self.assertGreater(len(self.timeline("long")), 2 * 300)
        self.browser.requests()
        self.open_session("long")
        self.shown(0)
        for batch in [7, 3, 5, 0, 6]:
            number = batch * self.frames + self.frames // 2
            self.browser.run("location.hash = `t=${arguments[0]}`", start + number * 1_000)
            self.assertEqual(self.browser.when(browser.PAINTED, "pictureNumber()", number, "ready"), batch)
        self.assertLess(len(self.fetched()), 6 * 20)
        last = self.batches * self.frames - 1
        self.browser.press(Keys.END)
        self.shown(last)
        self.browser.press("+", "+", "+", "+", "+", "+", "+", "+", "+", "+", Keys.ARROW_LEFT)
        self.shown(last - 1)
        buffered = self.browser.run("""
            const {buffered} = document.querySelector('video');
            let sum = 0;
            for (let range = 0; range < buffered.length; range++) sum += buffered.end(range) - buffered.start(range);
            return sum""")
        self.assertLess(buffered, 300)


class Playlist(PageTest):
    """Without Media Source Extensions, the page uses the browser's HLS player if there is one."""

    browser_options = {"before": "delete window.MediaSource; delete window.ManagedMediaSource;"}

    @classmethod
    def sessions(cls, output):
        browser.encode(output, "exact-1fps", "gap")

    def test_every_capture_can_be_reached(self):
        for session in ["exact-1fps", "gap"]:
            self.open_session(session)
            for number in range(len(self.timeline(session))):
                with self.subTest(session=session, number=number):
                    self.assert_shown(number)
                self.browser.press(Keys.ARROW_RIGHT)


class StuckPlaylist(PageTest):
    """A browser's HLS player may never end a seek; opened again, it does."""

    browser_options = {"before": """
        delete window.MediaSource; delete window.ManagedMediaSource;
        const {get, set} = Object.getOwnPropertyDescriptor(HTMLMediaElement.prototype, 'currentTime');
        const {load} = HTMLMediaElement.prototype;
        Object.defineProperty(HTMLMediaElement.prototype, 'currentTime',
                              {get, set(seconds) { if (!window.isStuck) set.call(this, seconds); }});
        HTMLMediaElement.prototype.load = function () { window.isStuck = false; load.call(this); };"""}

    @classmethod
    def sessions(cls, output):
        browser.encode(output, "gap")

    def test_a_seek_that_does_not_end_is_repeated_in_the_playlist_opened_again(self):
        self.open_session("gap")
        self.assert_shown(0)
        self.browser.run("window.isStuck = true")
        self.browser.press(Keys.END)
        last = len(self.timeline("gap")) - 1
        self.assert_shown(last)
        self.assertFalse(self.browser.run("return window.isStuck"))
        self.browser.press(Keys.ARROW_LEFT)
        self.assert_shown(last - 1)


class LatePlaylist(PageTest):
    """The keys work while the browser still opens the session."""

    browser_options = {"before": """
        delete window.MediaSource; delete window.ManagedMediaSource;
        const {addEventListener} = EventTarget.prototype;
        HTMLMediaElement.prototype.addEventListener = function (name, heard, options) {
          const late = event => setTimeout(() => heard(event), 2000);
          addEventListener.call(this, name, name === 'loadedmetadata' ? late : heard, options);
        };"""}

    @classmethod
    def sessions(cls, output):
        browser.encode(output, "exact-1fps")

    def test_the_page_goes_where_the_user_went_meanwhile(self):
        last = len(self.timeline("exact-1fps")) - 1
        self.browser.complaints()
        self.open_session("exact-1fps")
        self.browser.press(Keys.END)
        self.assert_shown(last)
        self.open_session("exact-1fps")
        self.browser.press(Keys.HOME, " ")
        self.browser.wait("document.documentElement.dataset.state === 'playing'")
        self.assertEqual(self.browser.complaints(), [])


def element_is_page(browser):
    return browser.run("return document.activeElement === document.body")


if __name__ == "__main__":
    unittest.main()
