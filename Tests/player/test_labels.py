"""Tests the labels on the player: the lanes, the list, and the captions over the picture, in headless Chromium."""

import json
import shutil
import unittest
from pathlib import Path

import browser
from browser import PageTest

START = 1_767_859_512_340
# Texts of an enemy: markup, a direction that would turn what follows, and an address.
EVIL = "<img src=x onerror=\"window.hit=1\">\u202e\u0007 javascript:alert(1)"
LABELS = [
    {"timeMs": START - 500, "kind": "page", "text": "https://example.com/shop"},
    {"timeMs": START + 1000, "kind": "step", "text": "Open"},
    {"timeMs": START + 2500, "kind": "step", "text": "Add to cart", "endMs": START + 4000},
    {"timeMs": START + 3000, "kind": "log", "text": "slow answer", "level": "warning"},
    {"timeMs": START + 5200, "kind": "error", "text": EVIL, "level": "error"},
    {"timeMs": START + 6000, "kind": "caption", "text": "اختبار", "endMs": START + 7000},
    {"timeMs": START + 8000, "kind": "toast", "text": "Saved"},
]


def labelled(output, session, labels):
    """Encodes twelve pictures, one a second, with labels."""
    batch = Path(output).parent / f"batch-{session}"
    batch.mkdir()
    for number, source in enumerate(sorted((browser.ROOT / "fixtures" / "exact-1fps").glob("*.jpg"))[:12]):
        shutil.copy(source, batch / f"{START + 1000 * number}.jpg")
    if labels:
        (batch / "labels.jsonl").write_text("\n".join(json.dumps(label) for label in labels))
    browser.encode_batch(output, batch, session)


class Labels(PageTest):
    @classmethod
    def sessions(cls, output):
        labelled(output, "labelled", LABELS)
        labelled(output, "plain", [])

    def at(self, session, ms):
        self.browser.open(f"{self.serving.url}/sessions/{session}/#t={START + ms}")
        self.browser.wait("document.documentElement.dataset.picture === 'ready'")

    def captions(self):
        return self.browser.run("return [...document.querySelectorAll('#caption span')].map(span => span.textContent)")

    def rows(self):
        return self.browser.run(
            "return [...document.querySelectorAll('.note')].map(row => row.querySelector('.note-title').textContent)")

    def test_lanes_are_those_of_the_kinds_that_exist(self):
        self.at("labelled", 0)
        self.browser.wait("!document.getElementById('lanes').hidden")
        self.assertEqual(self.browser.run("return document.getElementById('lanes').dataset.lanes"), "Steps Marks Pages Errors")
        # The lane of errors has one tick, in the colour of errors, at its instant.
        columns = self.browser.run("""
            const canvas = document.getElementById('lanes');
            const {width, height} = canvas;
            const row = Math.round(height * 3.4 / 4);
            const {data} = canvas.getContext('2d').getImageData(0, row, width, 1);
            return [[...Array(width).keys()].filter(x => data[4 * x + 3]), width];""")
        self.assertTrue(columns[0], columns)
        self.assertAlmostEqual(columns[0][0] / columns[1], 5200 / 12000, delta=0.01)
        self.assertLessEqual(columns[0][-1] - columns[0][0], 3)

    def test_captions_are_over_the_picture_and_can_be_hidden(self):
        for ms, expected in [(1000, ["Open"]), (3000, ["Add to cart"]), (6500, ["اختبار"]), (11_900, [])]:
            self.at("labelled", ms)
            self.assertEqual(self.captions(), expected)
        self.at("labelled", 3000)
        self.assertEqual(self.browser.find("#captions").get_attribute("aria-pressed"), "true")
        self.browser.run("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'v', bubbles: true}))")
        self.browser.wait("document.getElementById('caption').hidden")
        self.assertEqual(self.browser.find("#captions").get_attribute("aria-pressed"), "false")

    def test_texts_of_an_enemy_are_texts(self):
        self.at("labelled", 5500)
        self.assertEqual(len(self.captions()), 1)
        self.assertIn("<img src=x", self.captions()[0])
        self.assertIn("<img src=x", self.browser.find("#notes").text)
        self.assertEqual(self.browser.run("return window.hit ?? 0"), 0)
        self.assertEqual(self.browser.run("return document.querySelectorAll('#caption img, #notes img, #notes a').length"), 0)
        isolated = self.browser.run("""
            return [...document.querySelectorAll('#caption span, .note-text')].every(
              one => getComputedStyle(one).unicodeBidi === 'isolate');""")
        self.assertTrue(isolated)

    def test_list_is_filtered_by_kind_and_level(self):
        self.at("labelled", 0)
        self.assertEqual(self.rows(), ["Page", "Step", "Step", "Log", "Error", "Caption", "toast"])
        self.browser.run("""
            const kind = document.getElementById('note-kind');
            kind.value = 'step';
            kind.dispatchEvent(new Event('change'));""")
        self.assertEqual(self.rows(), ["Step", "Step"])
        self.browser.run("""
            const [kind, level] = ['note-kind', 'note-level'].map(id => document.getElementById(id));
            [kind.value, level.value] = ['', '1'];
            level.dispatchEvent(new Event('change'));""")
        self.assertEqual(self.rows(), ["Log", "Error"])
        for field in ("note-kind", "note-level"):
            self.assertTrue(self.browser.run("return document.getElementById(arguments[0]).labels.length", field))

    def test_list_follows_the_picture_and_a_click_jumps(self):
        self.at("labelled", 6500)
        current = "return document.querySelector('.note[aria-current] .note-title')?.textContent"
        self.browser.wait("document.querySelector('.note[aria-current]')")
        self.assertEqual(self.browser.run(current), "Caption")
        self.browser.run("document.querySelectorAll('.note')[2].click()")
        self.browser.wait("Number(document.documentElement.dataset.position) < 2600")
        self.assertEqual(self.browser.run(current), "Step")
        self.browser.wait("document.querySelector('#caption span')?.textContent === 'Add to cart'")

    def test_session_without_labels_has_none_of_it(self):
        self.at("plain", 0)
        for part in ("captions", "lanes", "caption", "note-filter", "label-key"):
            self.assertTrue(self.browser.run("return document.getElementById(arguments[0]).hidden", part), part)


if __name__ == "__main__":
    unittest.main()
