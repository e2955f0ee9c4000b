"""Tests how the page of all sessions gets a long list, and what changes while it is open, in headless Chromium."""

import json
import unittest

from selenium.webdriver.common.by import By

import browser
from browser import PageTest
from test_list import headings, names, summaries

# Answers for the list in the place of the server, by pages and changes. The tests change it. The page looks every second, not every
# thirty.
SERVER = """
    (wait => window.setTimeout = (action, ms, ...rest) => wait(action, ms >= 5000 ? 1000 : ms, ...rest))(setTimeout);
    window.served = new (class {
      epoch = 1;
      revision = 1;
      sessions = new Map();
      changed = [];
      asked = [];
      failing = false;
      // Parts that are answered at once; others wait for a larger number.
      allowed = Infinity;
      partSize = 1000;

      put(session) {
        this.sessions.set(session.session, session);
        this.changed.push([++this.revision, session.session]);
      }
      remove(name) {
        this.sessions.delete(name);
        this.changed.push([++this.revision, name]);
      }
      restart() {
        [this.epoch, this.revision, this.changed] = [this.epoch + 1, 1, []];
      }
      answer({since, after, limit = 1000}) {
        const [epoch, old] = (since ?? '').split('-').map(Number);
        const facts = {total: this.sessions.size, frames: 7, bytes: 7, revision: `${this.epoch}-${this.revision}`};
        if (epoch === this.epoch) {
          const part = this.changed.filter(([revision]) => revision > old).slice(0, this.partSize);
          const names = [...new Set(part.map(([, name]) => name))];
          const last = part.at(-1)?.[0] ?? old;
          return {...facts, revision: `${epoch}-${last}`, since, removed: names.filter(name => !this.sessions.has(name)),
            sessions: names.filter(name => this.sessions.has(name)).map(name => this.sessions.get(name)),
            ...(last < this.revision ? {more: true} : {})};
        }
        const place = ({startMs, session}) => `${String(startMs ?? 9e15).padStart(16, '0')},${session}`;
        const rest = [...this.sessions.values()].sort((one, other) => (place(one) < place(other) ? 1 : -1))
          .filter(session => !after || place(session) < after);
        const page = rest.slice(0, Number(limit));
        return {...facts, sessions: page, ...(page.length < rest.length ? {next: place(page.at(-1))} : {})};
      }
    })();
    for (const session of %s) served.sessions.set(session.session, session);
    (fetched => window.fetch = async (path, ...rest) => {
      if (!String(path).startsWith('/sessions.json')) return fetched(path, ...rest);
      const query = path.split('?')[1] ?? '';
      served.asked.push(query);
      const number = served.asked.length;
      while (number > served.allowed) await new Promise(done => requestAnimationFrame(done));
      if (served.failing) return new Response('{"error": "disk"}', {status: 503});
      // As JSON: the page has objects of its own.
      return new Response(JSON.stringify(served.answer(Object.fromEntries(new URLSearchParams(query)))));
    })(window.fetch);
    // All that a screen reader was told.
    window.said = [];
    addEventListener('DOMContentLoaded', () => new MutationObserver(() => said.push(document.getElementById('shown').textContent))
      .observe(document.getElementById('shown'), {childList: true}));
"""


def state_of(name):
    """Returns an expression for the state on the card of a session."""
    return ("[...document.querySelectorAll('.session')].find(card => card.querySelector('h3').textContent === '%s')"
            "?.querySelector('.state').textContent" % name)


class PartsTest(PageTest):
    """A page with a list that the test changes. `count` sessions are there at first."""

    count = 3
    # Changes the list before the page is opened.
    before = ""

    @classmethod
    def setUpClass(cls):
        cls.browser_options = {"before": SERVER % json.dumps(summaries(cls.count)) + cls.before}
        super().setUpClass()

    def open(self, fragment="#group=none&view=rows"):
        self.browser.open(self.serving.url + "/" + fragment)

    def change(self, script):
        self.browser.run(script)
        self.looked()

    def looked(self, times=1):
        """Waits until the page has looked for changes so often."""
        self.browser.run("window.before = served.asked.length")
        # The request behind the last of them begins when its answer was used.
        self.browser.wait("served.asked.length > window.before + arguments[0]", times)


class Changes(PartsTest):
    def test_card_of_a_session_that_ended_while_the_server_was_started_again_says_so(self):
        self.open()
        self.browser.wait(state_of("session-0001") + ".startsWith('last picture')")
        self.change("""
            served.restart();
            served.sessions.set('session-0001', {...served.sessions.get('session-0001'), complete: true, frames: 77});""")
        self.assertEqual(self.browser.run("return " + state_of("session-0001")), "ended")
        self.assertIn("77 frames", self.browser.find("#groups").text)

    def test_new_session_that_cannot_be_read_is_shown_and_the_reason_that_follows_too(self):
        self.open()
        self.change("served.put({session: 'broken', error: 'torn'})")
        self.assertEqual(names(self.browser)[-1], "broken")
        self.assertEqual(self.browser.find(".error").text, "torn")
        self.change("served.put({session: 'broken', error: 'lost'})")
        self.assertEqual(self.browser.find(".error").text, "lost")
        self.change("served.put({...served.sessions.get('session-0002'), session: 'broken'})")
        self.assertEqual(self.browser.driver.find_elements(By.CSS_SELECTOR, ".error"), [])
        self.assertIn("broken", names(self.browser))

    def test_removed_session_goes_and_one_of_its_name_is_another_one(self):
        self.open()
        self.change("served.remove('session-0001')")
        self.assertEqual(names(self.browser), ["session-0002", "session-0000"])
        self.change("served.put({session: 'session-0001', startMs: 5, endMs: 6, frames: 42, complete: true})")
        self.assertEqual(names(self.browser), ["session-0002", "session-0000", "session-0001"])
        self.assertIn("42 frames", self.browser.find(".session:last-child").text)

    def test_changes_in_many_parts_are_shown_once(self):
        self.open()
        self.browser.run("""
            window.shows = 0;
            new MutationObserver(() => window.shows++).observe(document.getElementById('groups'), {childList: true});
            served.partSize = 1;
            for (let number = 0; number < 20; number++) {
              served.put({session: `new-${number}`, startMs: 5, endMs: 6, frames: 1, complete: true});
            }""")
        self.browser.wait("document.querySelectorAll('.session').length === 23")
        self.looked()
        self.assertEqual(self.browser.run("return window.shows"), 1)

    def test_focus_stays_on_the_button_of_a_group(self):
        self.open("#group=day&view=rows")
        self.browser.run("document.querySelector('.group summary').focus()")
        self.change("served.put({session: 'new', startMs: 1_767_859_512_341, endMs: 6, frames: 1, complete: true})")
        self.assertEqual(len(names(self.browser)), 4)
        self.assertEqual(self.browser.run("return document.activeElement.closest('.group')?.innerText.split('\\n')[0]"),
                         headings(self.browser)[0].split(":")[0])


class Pages(PartsTest):
    """A list of three pages. The first request alone is answered at once."""

    count = 1_200
    before = "served.allowed = 1;"

    def test_filter_says_of_how_many_and_screen_readers_hear_no_growing_number(self):
        self.open("#group=none&view=rows&q=session-1")
        self.browser.wait("document.getElementById('shown').textContent === '200 of 500 shown, loading'")
        self.assertEqual(self.browser.find("#loaded").text, "500 of 1200")
        self.browser.run("served.allowed = 2")
        self.browser.wait("document.getElementById('loaded').textContent === '1000 of 1200'")
        self.assertEqual(self.browser.find("#shown").text, "200 of 500 shown, loading")
        self.browser.run("served.allowed = Infinity")
        self.browser.wait("document.getElementById('shown').textContent === '200 of 1200 shown, all loaded'")
        self.assertEqual(self.browser.find("#loaded").text, "")
        self.assertLessEqual(len(self.browser.run("return said.filter(text => text)")), 4)

    def test_all_pages_are_shown_and_the_focus_stays_on_show_more(self):
        self.open()
        self.browser.run("served.allowed = Infinity")
        self.browser.wait("document.getElementById('shown').textContent === 'all loaded'")
        self.assertEqual(self.browser.find(".long > .button").text, "Show more (700)")
        self.browser.run("document.querySelector('.long > .button').focus()")
        self.change("served.put({session: 'new', startMs: 5, endMs: 6, frames: 1, complete: true})")
        self.assertEqual(self.browser.run("return document.activeElement.textContent"), "Show more (701)")

    def test_card_that_is_made_late_shows_its_session_as_it_is(self):
        self.open()
        self.browser.run("served.allowed = Infinity")
        self.browser.wait("document.querySelector('.long > .button').textContent === 'Show more (700)'")
        self.change("served.put({...served.sessions.get('session-0601'), complete: true, frames: 77})")
        self.assertNotIn("session-0601", names(self.browser))
        self.browser.find(".long > .button").click()
        self.browser.wait(state_of("session-0601") + " === 'ended'")
        self.assertIn("\n77 frames", self.browser.find("#groups").text)

    def test_page_that_fails_is_told_and_asked_for_again(self):
        self.open()
        self.browser.run("served.failing = true; served.allowed = Infinity")
        self.browser.wait("document.getElementById('shown').textContent === 'not all loaded, trying again soon'")
        self.browser.run("served.failing = false")
        self.browser.wait("document.getElementById('shown').textContent === 'all loaded'")
        self.assertEqual(self.browser.find(".long > .button").text, "Show more (700)")

    def test_list_stays_while_a_server_that_was_started_again_is_asked_for_all(self):
        self.open("#group=none&view=rows&q=session-0003")
        self.browser.run("served.allowed = Infinity")
        self.browser.wait("document.getElementById('shown').textContent === '1 of 1200 shown, all loaded'")
        self.browser.run("""
            served.restart();
            served.sessions.delete('session-0004');
            served.allowed = served.asked.length + 1;""")
        self.browser.wait("document.getElementById('loaded').textContent === '1000 of 1199'")
        # It is on the last page, which has not come.
        self.assertEqual(names(self.browser), ["session-0003"])
        self.browser.run("served.allowed = Infinity")
        self.browser.wait("document.getElementById('shown').textContent === '1 of 1199 shown, all loaded'")

    def test_two_servers_at_one_address_are_asked_for_all_less_and_less_often(self):
        self.open()
        self.browser.run("served.allowed = Infinity")
        self.browser.wait("document.getElementById('shown').textContent === 'all loaded'")
        # Each refresh comes to a server that does not know the revision.
        self.browser.run("""
            window.looks = 0;
            const answer = served.answer.bind(served);
            served.answer = asked => {
              if (asked.since) served.restart();
              return answer(asked);
            };
            (wait => window.setTimeout = (action, ms, ...rest) => wait((...given) => {
              if (ms === 30_000) window.looks++;
              action(...given);
            }, ms === 30_000 ? 50 : ms, ...rest))(setTimeout);""")
        self.browser.wait("window.looks >= 40")
        self.assertLessEqual(
            self.browser.run("return served.asked.filter(asked => asked.startsWith('since')).length"), 9)


if __name__ == "__main__":
    unittest.main()
