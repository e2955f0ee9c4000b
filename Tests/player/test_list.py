"""Tests the page with all sessions, in headless Chromium."""

import json
import unittest

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import browser
from browser import PageTest


def names(page):
    """Returns the names of the visible sessions, in order."""
    return page.run("""
        return [...document.querySelectorAll('.session')].filter(row => row.offsetParent).map(
          row => row.querySelector('h2').textContent)""")


class List(PageTest):
    @classmethod
    def sessions(cls, output):
        browser.encode(output, "exact-1fps", "gap", "on-change")
        browser.generated(output, "late", 2, start=1_767_859_512_340 + 86_400_000)

    def setUp(self):
        self.browser.open(self.serving.url + "/")

    def choose(self, order):
        self.browser.run("""
            const sort = document.getElementById('sort');
            sort.value = arguments[0];
            sort.dispatchEvent(new Event('change'));""", order)

    def test_list_shows_the_properties_of_each_session(self):
        text = next(row.text for row in self.browser.driver.find_elements(By.CSS_SELECTOR, ".session")
                    if row.text.startswith("gap"))
        for words in ["2026-01-08 08:05:12 UTC", "23 s", "5 frames", "2 gaps", "open"]:
            self.assertIn(words, text)
        self.assertRegex(text, r"(?m)^3\d\.\d kB$")

    def test_list_is_sorted_in_each_order(self):
        self.assertEqual(names(self.browser)[0], "late")
        for order, wanted in [("oldest", "exact-1fps"), ("name", "exact-1fps"), ("longest", "gap"), ("gaps", "gap"),
                              ("frames", "exact-1fps"), ("largest", "exact-1fps"), ("newest", "late")]:
            with self.subTest(order=order):
                self.choose(order)
                self.assertEqual(names(self.browser)[0], wanted)

    def test_list_filters_by_name_and_date_and_keeps_the_filter(self):
        self.browser.press(Keys.TAB, "2026-01-09")
        self.assertEqual(names(self.browser), ["late"])
        self.assertEqual(self.browser.find("#shown").text, "1 of 4 shown")
        self.browser.driver.refresh()
        self.browser.wait("document.documentElement.dataset.state === 'ready'")
        self.assertEqual(names(self.browser), ["late"])
        self.browser.find("#filter").clear()
        self.browser.find("#filter").send_keys("GAP 08:05")
        self.assertEqual(names(self.browser), ["gap"])

    def test_first_picture_of_each_session_is_visible(self):
        self.browser.wait("[...document.images].every(image => image.complete)")
        widths = self.browser.run("return [...document.images].map(image => image.naturalWidth)")
        self.assertEqual(len(widths), 4)
        self.assertNotIn(0, widths)

    def test_session_opens_with_the_keyboard_alone(self):
        self.browser.press(Keys.TAB, Keys.TAB, Keys.TAB, Keys.ENTER)
        self.browser.wait("location.pathname === '/sessions/late/' && document.documentElement.dataset.picture === 'ready'")



class Faults(PageTest):
    """Faults of a session that only its manifests record."""

    @classmethod
    def sessions(cls, output):
        browser.encode(output, "corrupt-frames", "exact-1fps")
        browser.generated(output, "torn", 8)

    @classmethod
    def damage(cls, output):
        sorted((output / "torn").glob("segment-*.mp4"))[-1].unlink()

    def test_list_reports_refused_frames_and_damage(self):
        self.browser.open(self.serving.url + "/")
        tags = """[...document.querySelectorAll('.session')].filter(row => row.querySelector('h2').textContent === arguments[0])
            .flatMap(row => [...row.querySelectorAll('.refused, .bad')].map(tag => tag.textContent)).join()"""
        self.browser.wait(f"{tags} === '3 refused frames'", "corrupt-frames")
        self.browser.wait(f"{tags} === 'damaged'", "torn")
        self.assertEqual(self.browser.run(f"return {tags}", "exact-1fps"), "")


class Odd(PageTest):
    """The list reports sessions that it cannot read, and shows the others."""

    @classmethod
    def sessions(cls, output):
        browser.encode(output, "exact-1fps")

    @classmethod
    def damage(cls, output):
        (output / "broken").mkdir()
        (output / "broken/session.json").write_text("{")
        (output / "broken/segment-1767859512340.json").write_text("{")

    def test_unreadable_session_is_reported(self):
        self.browser.open(self.serving.url + "/")
        self.assertEqual(names(self.browser), ["exact-1fps", "broken"])
        row = self.browser.find(".session:has(.error)")
        self.assertTrue(row.find_element(By.CSS_SELECTOR, ".error").text)
        self.assertEqual(row.find_elements(By.CSS_SELECTOR, "a"), [])


class Empty(PageTest):
    def test_an_empty_list_says_how_to_get_a_session(self):
        self.browser.open(self.serving.url + "/")
        self.assertIn("encoder-worker encode", self.browser.find("#nothing").text)
        self.assertFalse(self.browser.find("#filters").is_displayed())

    def test_list_that_cannot_be_loaded_shows_the_reason(self):
        self.browser.command("Network.enable")
        self.browser.command("Network.setBlockedURLs", urls=["*sessions.json"])
        self.addCleanup(self.browser.command, "Network.setBlockedURLs", urls=[])
        self.browser.open(self.serving.url + "/")
        self.assertIn("does not answer", self.browser.find("#nothing").text)
        self.browser.command("Network.setBlockedURLs", urls=[])
        self.browser.find("#reload").click()
        self.browser.wait("document.documentElement.dataset.state === 'empty'")


class Many(PageTest):
    """A long list: the page requests only visible pictures."""

    count = 1_000 if browser.IS_FULL else 300

    rows = lambda count: [{"session": f"session-{number:04}", "startMs": 1_767_859_512_340 + number * 60_000, "endMs": 0,
             "durationMs": number * 1000, "frames": number, "segments": 1, "gaps": number % 3, "bytes": number * 1000,
             "complete": number % 2 == 0} for number in range(count)]

    # The test gives the page this list instead of the server's.
    browser_options = {"before": """
        const fetched = window.fetch;
        window.fetch = (path, ...rest) => path === '/sessions.json'
          ? Promise.resolve(new Response(JSON.stringify({sessions: %s}))) : fetched(path, ...rest);""" % json.dumps(rows(count))}

    def test_many_sessions_are_sorted_and_filtered(self):
        self.browser.requests()
        self.browser.open(self.serving.url + "/")
        shown = names(self.browser)
        self.assertEqual(shown, [f"session-{number:04}" for number in reversed(range(self.count))])
        self.browser.press(Keys.TAB, shown[0])
        self.assertEqual(names(self.browser), shown[:1])
        pictures = [url for url in self.browser.requests() if url.endswith("thumbnail.jpg")]
        self.assertGreater(len(pictures), 0)
        self.assertLess(len(pictures), 100)


if __name__ == "__main__":
    unittest.main()
