"""Tests the page with all sessions, in headless Chromium."""

import json
import unittest
import urllib.error
import urllib.request

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import browser
from browser import PageTest


def names(page):
    """Returns the names of the visible sessions, in order."""
    return page.run("""
        return [...document.querySelectorAll('.session')].filter(row => row.checkVisibility()).map(
          row => row.querySelector('h3').textContent)""")


def headings(page):
    """Returns the titles and counts of the groups, in order."""
    return page.run("""
        return [...document.querySelectorAll('.group summary')].map(
          summary => [...summary.children].map(part => part.textContent).join(': '))""")


def summaries(count):
    """Returns the entries of a list of sessions."""
    return [{"session": f"session-{number:04}", "startMs": 1_767_859_512_340 + number * 60_000, "endMs": 0,
             "durationMs": number * 1000, "frames": number, "segments": 1, "gaps": number % 3, "bytes": number * 1000,
             "complete": number % 2 == 0} for number in range(count)]


def listing(sessions):
    """Returns the options of a browser that gives the pages this list instead of the server's."""
    return {"before": """
        const fetched = window.fetch;
        window.fetch = (path, ...rest) => String(path).startsWith('/sessions.json')
          ? Promise.resolve(new Response(JSON.stringify(%s))) : fetched(path, ...rest);""" % json.dumps(
              {"sessions": sessions, "total": len(sessions), "frames": sum(one["frames"] for one in sessions),
               "bytes": sum(one["bytes"] for one in sessions), "revision": "list-1"})}


class List(PageTest):
    @classmethod
    def sessions(cls, output):
        browser.encode(output, "exact-1fps", "gap", "on-change")
        browser.generated(output, "late", 2, start=1_767_859_512_340 + 86_400_000)

    def setUp(self):
        self.browser.run("try { localStorage.clear() } catch {}")
        self.browser.open(self.serving.url + "/#group=none&view=rows")

    def choose(self, order):
        self.browser.run("""
            const sort = document.getElementById('sort');
            sort.value = arguments[0];
            sort.dispatchEvent(new Event('change'));""", order)

    def test_list_shows_the_properties_of_each_session(self):
        text = next(row.text for row in self.browser.driver.find_elements(By.CSS_SELECTOR, ".session")
                    if row.text.startswith("gap"))
        for words in ["2026-01-08 08:05:12 UTC", "23 s", "5 frames", "2 gaps", "months ago"]:
            self.assertIn(words, text)
        self.assertRegex(text, r"3\d\.\d kB")

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
        self.browser.find("#search").send_keys(Keys.TAB, Keys.ENTER)
        self.browser.wait("location.pathname === '/sessions/late/' && document.documentElement.dataset.picture === 'ready'")



class Changing(PageTest):
    """The page shows what comes and changes while it is open."""

    # The page looks every second, not every thirty.
    browser_options = {"before": """
        (wait => window.setTimeout = (action, ms, ...rest) => wait(action, ms >= 5000 ? 1000 : ms, ...rest))(setTimeout);"""}

    @classmethod
    def sessions(cls, output):
        browser.generated(output, "first", 2)

    def test_new_sessions_and_pictures_appear_and_the_focus_stays(self):
        self.browser.open(self.serving.url + "/#group=none&view=rows")
        link = self.browser.find("h3 a")
        self.browser.run("arguments[0].focus()", link)
        self.browser.wait("document.images.length === 1 && document.images[0].naturalWidth")
        before = self.browser.run("return document.images[0].src")
        browser.generated(self.output, "first", 3, ["exact-1fps/0005.jpg"], start=1_767_859_514_340)
        self.browser.wait("document.querySelector('.session').innerText.includes('5 frames')")
        self.assertNotEqual(self.browser.run("return document.images[0].src"), before)
        browser.generated(self.output, "second", 2, start=1_767_859_512_340 + 86_400_000, final=True)
        self.browser.wait("document.querySelectorAll('.session').length === 2")
        self.assertEqual(names(self.browser), ["second", "first"])
        self.assertEqual(self.browser.run("return document.activeElement"), link)


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
        self.browser.open(self.serving.url + "/#group=none")
        tags = """[...document.querySelectorAll('.session')].filter(row => row.querySelector('h3').textContent === arguments[0])
            .flatMap(row => [...row.querySelectorAll('.refused, .bad')].map(tag => tag.textContent)).join()"""
        self.browser.wait(f"{tags} === '2 refused frames'", "corrupt-frames")
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
        self.browser.command("Network.setBlockedURLs", urls=["*sessions.json*"])
        self.addCleanup(self.browser.command, "Network.setBlockedURLs", urls=[])
        self.browser.open(self.serving.url + "/")
        self.assertIn("does not answer", self.browser.find("#nothing").text)
        self.browser.command("Network.setBlockedURLs", urls=[])
        self.browser.find("#reload").click()
        self.browser.wait("document.documentElement.dataset.state === 'empty'")


class Many(PageTest):
    """A long list: the page requests only visible pictures."""

    count = 500 if browser.IS_FULL else 300

    browser_options = listing(summaries(count))

    def test_many_sessions_are_sorted_and_filtered(self):
        self.browser.requests()
        self.browser.open(self.serving.url + "/#group=none")
        shown = names(self.browser)
        self.assertEqual(shown, [f"session-{number:04}" for number in reversed(range(self.count))])
        self.browser.press(Keys.TAB, shown[0])
        self.assertEqual(names(self.browser), shown[:1])
        pictures = [url for url in self.browser.requests() if url.endswith("thumbnail.jpg?t=last")]
        self.assertGreater(len(pictures), 0)
        self.assertLess(len(pictures), 100)


class Looks(PageTest):
    """Cards and rows, groups, and the choice of two sessions."""

    @classmethod
    def sessions(cls, output):
        for number in (1, 2, 3):
            browser.generated(output, f"kiosk-{number:02}", 2)
        browser.generated(output, "kiosk-04", 2, start=1_767_859_512_340 + 86_400_000)
        browser.encode(output, "gap")

    def open(self, fragment=""):
        self.browser.open(f"{self.serving.url}/{fragment}")

    def setUp(self):
        self.open()
        self.browser.run("localStorage.clear()")
        self.open()

    def test_sessions_are_grouped_by_name_and_day(self):
        self.assertEqual(headings(self.browser), [
            "kiosk · Fri 2026-01-09: 1 session", "Thu 2026-01-08: 1 session", "kiosk · Thu 2026-01-08: 3 sessions"])
        for by, wanted in [("name", ["kiosk: 4 sessions", "Others: 1 session"]),
                           ("day", ["Fri 2026-01-09: 1 session", "Thu 2026-01-08: 4 sessions"]), ("none", [])]:
            with self.subTest(by=by):
                self.browser.run("""
                    const group = document.getElementById('group');
                    group.value = arguments[0];
                    group.dispatchEvent(new Event('change'));""", by)
                self.assertEqual(headings(self.browser), wanted)
                self.assertEqual(len(names(self.browser)), 5)
        # The address and the browser remember it.
        self.assertIn("group=none", self.browser.driver.current_url)
        self.open()
        self.assertEqual(headings(self.browser), [])

    def test_prefix_is_the_name_without_numbers_or_the_last_part(self):
        for name, prefix in [("kiosk-07", "kiosk"), ("kiosk-07-2026-11-26", "kiosk"), ("cam12", "cam"), ("a-b", "a"),
                             ("checkout", "checkout"), ("2026-11-26", ""), ("-x", "-x")]:
            with self.subTest(name=name):
                self.assertEqual(self.browser.call("groups.js", f"module.prefix({json.dumps(name)})"), prefix)

    def test_group_is_closed_and_opened_with_the_keyboard_and_the_filter_keeps_it(self):
        self.browser.find(".group:nth-child(3) summary").send_keys(Keys.ENTER)
        self.assertEqual(names(self.browser), ["kiosk-04", "gap"])
        self.browser.find("#filter").send_keys("kiosk")
        self.assertEqual(names(self.browser), ["kiosk-04"])
        self.assertEqual(headings(self.browser)[1], "kiosk · Thu 2026-01-08: 3 sessions")
        self.browser.find(".group:nth-child(2) summary").send_keys(" ")
        self.browser.wait("[...document.querySelectorAll('.session')].filter(row => row.checkVisibility()).length === 4")
        self.browser.find("#close-all").click()
        self.assertEqual(names(self.browser), [])
        self.browser.find("#open-all").click()
        self.assertEqual(len(names(self.browser)), 4)

    def test_look_is_remembered_in_the_address_and_the_browser(self):
        self.assertFalse(self.browser.find(".session .line").is_displayed())
        self.browser.find("#rows").click()
        self.assertTrue(self.browser.find(".session .line").is_displayed())
        self.assertTrue(self.browser.driver.current_url.endswith("#view=rows"))
        self.open()
        self.assertEqual(self.browser.find("#rows").get_attribute("aria-pressed"), "true")
        self.open("#view=cards")
        self.assertEqual(self.browser.find("#rows").get_attribute("aria-pressed"), "false")

    def test_picture_is_the_last_one_and_is_not_sent_again(self):
        self.browser.wait("document.images.length === 5 && [...document.images].every(image => image.complete && image.naturalWidth)")
        url = self.browser.run("return document.images[0].currentSrc")
        self.assertTrue(url.endswith("/thumbnail.jpg?t=last"), url)
        with urllib.request.urlopen(url) as answer:
            tag = answer.headers["ETag"]
        with self.assertRaises(urllib.error.HTTPError) as again:
            urllib.request.urlopen(urllib.request.Request(url, headers={"If-None-Match": tag}))
        self.assertEqual(again.exception.code, 304)

    def test_two_sessions_are_chosen_and_opened_side_by_side(self):
        self.assertFalse(self.browser.find(".choice").is_displayed())
        self.browser.find("#choose").send_keys(Keys.ENTER)
        boxes = self.browser.driver.find_elements(By.CSS_SELECTOR, ".choice")
        self.assertEqual(boxes[0].get_attribute("aria-label"), "Compare kiosk-04")
        boxes[0].send_keys(" ")
        self.assertFalse(self.browser.find("#compare").is_displayed())
        boxes[1].send_keys(" ")
        # A third one takes the place of the first one.
        boxes[2].send_keys(" ")
        self.assertEqual([box.is_selected() for box in boxes], [False, True, True, False, False])
        self.assertEqual(self.browser.find("#chosen-text").text, "gap and kiosk-01")
        self.browser.find("#compare").click()
        self.browser.wait("location.pathname === '/compare' && location.search === '?a=gap&b=kiosk-01'")

    def test_other_session_is_asked_for_by_the_page_of_one(self):
        self.open("#with=gap")
        self.assertTrue(self.browser.find("#chosen").is_displayed())
        self.browser.driver.find_elements(By.CSS_SELECTOR, ".choice")[0].click()
        self.assertEqual(self.browser.find("#chosen-text").text, "gap and kiosk-04")


class Words(PageTest):
    """The search for words on screen."""

    @classmethod
    def sessions(cls, output):
        browser.encode(output, "exact-1fps", "gap", "jittered")
        browser.generated(output, "late", 2, start=1_767_859_512_340 + 86_400_000)
        browser.write_words(output, "exact-1fps", [
            ("Order", 2_000, 9_000), ("number", 4_000, 6_000), ("bob@example.com", 0, 1_000), ("<img", 7_000, 8_000)])
        browser.write_words(output, "gap", [("border", 0, 3_000)])
        browser.write_words(output, "late", [("orders", 1_000, 2_000)])

    def setUp(self):
        self.browser.run("try { localStorage.clear() } catch {}")
        self.browser.open(self.serving.url + "/")

    def search(self, text):
        """Types words and a return. Returns what the page says."""
        self.browser.find("#word").clear()
        self.browser.find("#word").send_keys(text, Keys.ENTER)
        return self.told()

    def told(self):
        return self.browser.wait("!['', 'Searching…'].includes(document.getElementById('search-text').textContent)"
                                 " && document.getElementById('search-text').textContent")

    def places(self):
        """Returns the words, sessions and links of the places, in order."""
        return self.browser.run("""
            return [...document.querySelectorAll('#found a')].filter(link => link.checkVisibility()).map(
              link => [...[...link.children].slice(0, 2).map(part => part.textContent), link.getAttribute('href')])""")

    def test_words_list_the_sessions_and_instants_that_hold_them(self):
        start = self.index("exact-1fps")["startMs"]
        # A word may begin with the query; the newest session comes first. Of one session the words were never read.
        self.assertEqual(self.search("ORDER"), "2 places found; 1 session without all words: encoder-worker text reads them.")
        self.assertEqual(self.places(), [["orders", "late", f"/sessions/late/#t={start + 86_401_000}"],
                                         ["Order", "exact-1fps", f"/sessions/exact-1fps/#t={start + 2_000}"]])
        self.assertIn("2026-01-08 08:05:14", self.browser.find("#found li:nth-child(2)").text)
        # Of several words: when the last one has come.
        self.assertIn("1 place found", self.search("number order"))
        self.assertEqual(self.places(), [["number", "exact-1fps", f"/sessions/exact-1fps/#t={start + 4_000}"]])
        self.assertIn("1 place found", self.search("example"))
        # The list of sessions stays.
        self.assertEqual(len(names(self.browser)), 4)

    def test_place_opens_the_picture_of_its_instant_with_the_keyboard_alone(self):
        self.search("number")
        self.browser.press(Keys.TAB, Keys.TAB)
        self.assertEqual(self.browser.run("return document.activeElement.closest('#found') !== null"), True)
        self.browser.press(Keys.ENTER)
        self.browser.wait("location.pathname === '/sessions/exact-1fps/' && document.documentElement.dataset.state !== 'loading'")
        self.assert_shown(4)

    def test_search_without_a_place_says_so(self):
        self.search("order")
        self.assertEqual(self.search("violet"), "Nothing found; 1 session without all words: encoder-worker text reads them.")
        self.assertEqual(self.places(), [])
        self.assertFalse(self.browser.find("#found").is_displayed())
        # Screen readers are told.
        self.assertEqual(self.browser.find("#search-text").get_attribute("role"), "status")
        # A query that the server refuses has its reason.
        self.assertIn("1 to 8 words", self.search("a b c d e f g h i"))
        self.browser.find("#word").clear()
        self.browser.find("#word").send_keys(Keys.ENTER)
        self.assertEqual(self.browser.find("#search-text").text, "")

    def test_search_is_kept_in_the_address(self):
        self.search("order")
        self.assertTrue(self.browser.driver.current_url.endswith("#text=order"))
        self.browser.driver.refresh()
        self.browser.wait("document.documentElement.dataset.state === 'ready'")
        self.assertIn("2 places found", self.told())
        self.browser.open(self.serving.url + "/#text=order+number")
        self.assertEqual(self.browser.find("#word").get_attribute("value"), "order number")
        self.assertIn("1 place found", self.told())

    def test_word_with_markup_is_text(self):
        self.assertIn("1 place found", self.search("<img"))
        self.assertEqual(self.places()[0][0], "<img")
        self.assertEqual(self.browser.run("return document.querySelectorAll('#found img').length"), 0)


class Kiosks(PageTest):
    """200 kiosks fit in a few screens, and a very long list is made in parts."""

    rows = [{**row, "session": f"kiosk-{number:04}", "startMs": 1_767_859_512_340 + number // 200 * 86_400_000}
            for number, row in enumerate(summaries(2_600))]
    browser_options = listing(rows)

    def test_many_kiosks_are_cards_of_which_few_are_made(self):
        self.browser.look(1280, 800)
        self.browser.requests()
        self.browser.open(self.serving.url + "/#group=both&view=cards")
        self.assertEqual(len(headings(self.browser)), 13)
        height = self.browser.run("return document.querySelector('.group').getBoundingClientRect().height")
        self.assertLess(height, 4 * 800)
        # The groups behind the first thousand sessions are closed, and have no cards.
        cards = lambda: self.browser.run("return document.querySelectorAll('.session').length")
        self.assertLessEqual(cards(), 1_200)
        self.browser.wait("document.querySelector('.thumb svg')")
        asked = [url for url in self.browser.requests() if "thumbnail" in url]
        self.assertTrue(0 < len(asked) < 200, len(asked))
        self.browser.find("#filter").send_keys("kiosk-0000")
        self.assertEqual(names(self.browser), ["kiosk-0000"])
        self.browser.open(self.serving.url + "/#group=none&view=cards")
        self.assertEqual(cards(), 500)
        self.browser.run("document.querySelector('.long > .button').click()")
        self.assertEqual(cards(), 1_000)
        self.assertEqual(self.browser.run("return document.activeElement.textContent"), names(self.browser)[500])


if __name__ == "__main__":
    unittest.main()
