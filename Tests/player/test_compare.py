"""Tests the page of two sessions side by side, in headless Chromium. The tests read the painted numbers off the pictures."""

import json
import unittest

from selenium import webdriver
from selenium.webdriver.common.keys import Keys

import browser
from browser import PageTest
from test_touches import event, touched

START = 1_767_859_512_340

# The state of both panes: what each shows, and the numbers in their pictures.
PANES = """
    function panes() {
      return [...document.querySelectorAll('.pane')].map(pane => {
        const video = pane.querySelector('video');
        const canvas = pane.testCanvas ??= document.createElement('canvas');
        canvas.width = video.videoWidth, canvas.height = video.videoHeight;
        const context = pane.testContext ??= canvas.getContext('2d', {willReadFrequently: true});
        context.drawImage(video, 0, 0);
        let number = 0;
        for (let bit = 0; bit < 8; bit++) {
          const [x, y] = [canvas.width * (2 * bit + 1) / 16, canvas.height * 3 / 8].map(Math.floor);
          if (canvas.width && context.getImageData(x, y, 1, 1).data[1] > 127) number |= 1 << bit;
        }
        return {picture: pane.dataset.picture, frame: Number(pane.dataset.frame), number};
      });
    }"""


class Compare(PageTest):
    """`one` has a capture a second for twelve seconds, `late` begins four seconds later, `gap` has a gap."""

    @classmethod
    def sessions(cls, output):
        browser.encode(output, "gap")
        pictures = [f"exact-1fps/{number:04}.jpg" for number in range(12)]
        browser.generated(output, "one", 12, pictures)
        browser.generated(output, "late", 12, pictures, start=START + 4_000)
        browser.generated(output, "far", 3, start=START + 86_400_000)
        touched(output, "touched", [event(500, "down", 45, 80)])

    def open(self, one, other, fragment="#"):
        self.browser.opened += 1
        self.browser.driver.get(f"{self.serving.url}/compare?a={one}&b={other}&{self.browser.opened}{fragment}")
        self.browser.wait("document.documentElement.dataset.state !== 'loading'")

    def at(self, ms, *wanted):
        """Waits for an instant, and for what both panes show: a number, or a word."""
        want = [{"picture": "ready", "number": part, "frame": part} if isinstance(part, int) else {"picture": part}
                for part in wanted]
        check = f"""(() => {{ {PANES}
            return panes().every((pane, index) => Object.entries(arguments[0][index]).every(([key, value]) => pane[key] === value))
              && (arguments[1] === null || Math.abs(Number(document.documentElement.dataset.instant) - arguments[1]) < 2);
          }})(...arguments)"""
        self.browser.wait(check.replace("arguments[0]", json.dumps(want)).replace("arguments[1]", json.dumps(ms)))

    def test_both_show_the_first_common_instant_and_follow_each_step(self):
        self.open("one", "late")
        self.at(START + 4_000, 4, 0)
        self.browser.press(Keys.ARROW_RIGHT)
        self.at(START + 5_000, 5, 1)
        self.browser.press(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
        self.at(START + 3_000, 3, "before")
        self.assertIn("begins at 2026-01-08 08:05:16.340 UTC", self.browser.find(".pane:nth-child(2) .message").text)
        self.browser.press(Keys.PAGE_UP)
        self.at(START + 13_000, "after", 9)
        self.assertIn("last picture ends at 2026-01-08 08:05:24.340 UTC", self.browser.find(".pane:nth-child(1) .message").text)
        self.browser.press(Keys.HOME)
        self.at(START, 0, "before")
        self.browser.press(Keys.END)
        self.at(START + 15_999, "after", 11)

    def test_instant_comes_from_the_address_and_goes_into_it(self):
        self.open("one", "late", f"#t={START + 7_500}")
        self.at(START + 7_500, 7, 3)
        self.browser.press(Keys.ARROW_RIGHT)
        self.at(START + 8_000, 8, 4)
        self.browser.wait("location.hash === '#t=%d'" % (START + 8_000))
        link = self.browser.find(".pane:nth-child(2) h2 a").get_attribute("href")
        self.assertEqual(link, f"{self.serving.url}/sessions/late/#t={START + 8_000}")

    def test_gap_is_said_while_the_other_goes_on(self):
        self.open("gap", "one", f"#t={START + 8_000}")
        self.at(START + 8_000, "gap", 8)
        self.assertIn("7.000 s", self.browser.find(".pane .message").text)
        self.browser.press(Keys.ARROW_RIGHT)
        self.at(START + 9_000, "gap", 9)

    def test_both_play_together_to_the_end(self):
        self.open("one", "late", f"#t={START + 2_000}")
        self.at(START + 2_000, 2, "before")
        self.browser.run(PANES + """
            window.seen = [];
            (function look() {
              window.seen.push({instant: Number(document.documentElement.dataset.instant), panes: panes()});
              if (!window.isOver) requestAnimationFrame(look);
            })();""")
        self.browser.run("""
            const rate = document.getElementById('rate');
            rate.value = '2';
            rate.dispatchEvent(new Event('change'));""")
        self.browser.press(" ")
        self.browser.wait("document.documentElement.dataset.state === 'playing'")
        self.browser.wait("document.documentElement.dataset.state === 'paused'")
        self.at(START + 15_999, "after", 11)
        seen = self.browser.run("window.isOver = true; return seen")
        instants = [entry["instant"] for entry in seen]
        self.assertEqual(instants, sorted(instants))
        for entry in seen:
            for pane, start in zip(entry["panes"], (START, START + 4_000)):
                if pane["picture"] == "ready":
                    # Both show the capture of the same instant.
                    self.assertEqual(pane["frame"], (entry["instant"] - start) // 1_000, entry)
        shown = [{entry["panes"][index]["frame"] for entry in seen if entry["panes"][index]["picture"] == "ready"}
                 for index in (0, 1)]
        self.assertGreater(len(shown[0]), 5)
        self.assertGreater(len(shown[1]), 5)

    def test_time_without_any_picture_is_skipped_in_playing(self):
        self.open("one", "far", f"#t={START + 11_000}")
        self.at(START + 11_000, 11, "before")
        self.assertIn("no instant in common", self.browser.find("#jump-text").text)
        self.browser.press(" ")
        self.browser.wait("Number(document.documentElement.dataset.instant) > arguments[0]", START + 86_400_000)

    def test_jump_and_timeline_move_both(self):
        self.open("one", "late")
        self.at(START + 4_000, 4, 0)
        self.browser.press("g")
        self.browser.run("document.activeElement.value = '2026-01-08T08:05:19.500'")
        self.browser.press(Keys.ENTER)
        self.at(START + 7_160, 7, 3)
        self.browser.press("g")
        self.browser.run("document.activeElement.value = '2026-02-08T08:05:19'")
        self.browser.press(Keys.ENTER)
        self.at(START + 15_999, "after", 11)
        self.assertIn("Outside of both sessions", self.browser.find("#jump-text").text)
        line = self.browser.find("#map-b")
        webdriver.ActionChains(self.browser.driver).move_to_element_with_offset(
            line, round(line.size["width"] * (6.5 / 16 - 0.5)), 0).click().perform()
        self.at(None, 6, 2)
        self.assertIn("one: frame 7 of 12; late: frame 3 of 12", self.browser.find("#timeline").get_attribute("aria-valuetext"))

    def test_zoomed_timeline_follows_the_instant(self):
        self.open("one", "late", f"#t={START}")
        self.at(START, 0, "before")
        self.browser.press("+", "+", "+")
        self.browser.press(Keys.END)
        self.at(START + 15_999, "after", 11)
        self.browser.wait("""(() => {
            const [line, head] = ['timeline', 'playhead'].map(id => document.getElementById(id).getBoundingClientRect());
            return head.left >= line.left && head.right <= line.right + 1;
          })()""")

    def test_touches_are_drawn(self):
        self.open("touched", "one", f"#t={START + 1_500}")
        self.at(START + 1_500, 1, 1)
        self.browser.wait("!document.querySelector('.pane .touch-layer').hidden")

    def test_every_control_is_reached_by_tab_and_shows_it(self):
        self.open("one", "late")
        self.at(START + 4_000, 4, 0)
        reached = []
        for _ in range(40):
            self.browser.press(Keys.TAB)
            name, outline = self.browser.run("""
                const element = document.activeElement;
                return [element.id || element.textContent.trim(), getComputedStyle(element).outlineStyle]""")
            if self.browser.run("return document.activeElement === document.body"):
                break
            reached.append(name)
            self.assertEqual(outline, "solid", name)
        for name in ["Sessions", "one", "late", "jump-time", "Go", "zoom-out", "zoom-in", "zoom-all", "timeline", "back",
                     "previous", "play", "next", "forward", "rate", "Keys"]:
            self.assertIn(name, reached)

    def test_session_that_is_not_there_is_said(self):
        self.open("one", "nobody")
        self.assertEqual(self.browser.run("return document.documentElement.dataset.state"), "failed")
        self.assertIn("no session nobody", self.browser.find(".pane:nth-child(2) .message").text)
        self.assertFalse(self.browser.find("#deck").is_displayed())

    def test_page_of_a_session_leads_here(self):
        self.open_session("one")
        self.shown(0)
        self.browser.find("#beside").click()
        self.browser.wait("location.pathname === '/' && document.documentElement.dataset.state === 'ready'")
        self.browser.run("""
            [...document.querySelectorAll('.choice')].find(box => box.ariaLabel === 'Compare late').click();
            document.getElementById('compare').click()""")
        self.browser.wait("location.search === '?a=one&b=late'")
        self.browser.complaints()
        self.at(START + 4_000, 4, 0)
        self.assertEqual(self.browser.complaints(), [])


if __name__ == "__main__":
    unittest.main()
