"""Tests that the checks of Benchmarks/soak.py find losses and growth, and that its load waits for no worker."""
import os
import sys
import time
import unittest
from types import SimpleNamespace

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Benchmarks"))

import soak_load
import soak_worker
from soak_figures import LIMITS, Part, slope
from soak_load import FILMS, FRAMES, PHASES, TICK, Batch, Ledger, Load

BATCH = Batch("s", 0, False)


def event(batch=BATCH, name="batch.published", digest="a", **members):
    told = {"session": batch.session, "frames": FRAMES, "segmentCount": 1, "refusedCount": 0, "gaps": [],
            "startMs": batch.startMs, "segments": [{"file": "f.mp4", "sha256": digest}], **members}
    return {"event": name, "batch": batch.name, "key": "k", "sessions": [told]}


def ledger(*events):
    one = Ledger()
    one.release(BATCH, 1.0)
    for each in events:
        one.arrive(3.5, each)
    return one


def part(**samples):
    length = 20 * PHASES * TICK
    values = {"cpu": lambda at: at / 2, "machine": lambda at: at, "rss": lambda at: 40, "memory": lambda at: 20,
              "descriptors": lambda at: 30 + at % 4, **samples}
    found = [SimpleNamespace(at=at, **{name: value(at) for name, value in values.items()}) for at in range(0, length, 3)]
    return Part("a spool", 500, 0, length, length, length, Ledger(), found, [], [], {}, (0, 0))


class SoakTests(unittest.TestCase):
    def test_a_published_batch_counts_once_with_its_latency(self):
        one = ledger(event(), event(name="batch.duplicate"))
        self.assertEqual((list(one.latencies), one.repeated, one.faults, one.waiting), ([2.5], 1, [], {}))

    def test_each_wrong_event_is_a_fault(self):
        wrong = [event(name="batch.quarantined"), event(refusedCount=1), event(frames=4), event(startMs=1),
                 event(gaps=[{}]), event(Batch("s", 1, False))]
        for one in [*(ledger(each) for each in wrong), ledger(event(), event(digest="b"))]:
            self.assertEqual(len(one.faults), 1)

    def test_an_end_without_event_and_a_second_end_are_faults(self):
        end = {"event": "session.ended", "session": "s", "key": "k", "batch": "", "sessions": []}
        one = ledger(event(), end, end)
        self.assertEqual((one.repeated, one.faults), (1, []))
        self.assertEqual((list(one.forget("s")), one.faults), ([BATCH.name], []))
        self.assertEqual(len(ledger(end, end | {"key": "l"}).faults), 1)
        one = ledger(event())
        one.forget("s")
        self.assertEqual(len(one.faults), 1)

    def test_an_index_that_differs_from_the_events_is_a_fault(self):
        whole = {"segments": [{"file": "f.mp4", "sha256": "a"}], "gaps": [], "frames": FRAMES}
        for index, faults in ((whole, 0), (whole | {"segments": []}, 1), (whole | {"frames": 4}, 1), (whole | {"gaps": [{}]}, 1)):
            one = ledger(event())
            one.check("s", index)
            self.assertEqual(len(one.faults), faults)

    def test_growth_is_found_in_spite_of_outliers(self):
        self.assertAlmostEqual(slope([(at, 2 * at + (1_000 if at % 10 == 0 else 0)) for at in range(300)]), 2, places=1)
        self.assertEqual(part().faults, [])
        for name, limit in LIMITS.items():
            self.assertEqual(len(part(**{name: lambda at: 40 + at * limit / 300}).faults), 1)
            self.assertEqual(part(**{name: lambda at: 40 + at * limit / 3_000}).faults, [])
            # It rises behind the start only.
            self.assertEqual(part(**{name: lambda at: 40 + min(at, 700) * limit / 300}).faults, [])

    def test_arrivals_keep_their_schedule_although_no_batch_is_published(self):
        released = []
        queue = SimpleNamespace(prepare=lambda batch: None, release=lambda batch: released.append(time.monotonic()))
        self.addCleanup(setattr, soak_load, "TICK", TICK)
        soak_load.TICK = 0.1
        load, start = Load(queue, Ledger(), 10, PHASES), time.monotonic()
        load.run(start, lambda: True)
        self.assertEqual(len(load.ledger.waiting), 10 * PHASES)
        for index, at in enumerate(released):
            tick, slot = divmod(index, 10)
            self.assertGreaterEqual(at, start + tick * 0.1 + (load.offsets[slot] if tick % 2 == 0 else 0))
        self.assertEqual(load.offsets, sorted(load.offsets))
        self.assertGreater(load.offsets[-1] - load.offsets[0], 0.02)

    def test_each_film_is_shown_by_a_tenth_of_the_sessions_of_each_length_and_the_next_session_shows_another(self):
        shown = []
        queue = SimpleNamespace(prepare=shown.append)
        load = Load(queue, Ledger(), 100, PHASES)
        for live in load.live:
            live["batches"] = 1
        for _ in range(2):
            for slot in range(100):
                load.prepare(slot)
        for batches in (shown[:100], shown[0:100:soak_load.LONG], shown[100:]):
            films = [batch.film for batch in batches]
            self.assertEqual([films.count(film) for film in range(FILMS)], [len(films) // FILMS] * FILMS)
        self.assertTrue(all(one.film != other.film for one, other in zip(shown[:100], shown[100:])))

    def test_the_worker_runs_on_its_cpu(self):
        core, told = max(os.sched_getaffinity(0)), []
        script = "import json, os; print(json.dumps(sorted(os.sched_getaffinity(0))))"
        worker = soak_worker.Worker([sys.executable, "-c", script], core, {}, lambda now, event: told.append(event),
                                    os.devnull)
        worker.process.wait()
        worker.reader.join()
        worker.process.stdout.close()
        self.assertEqual(told, [[core]])
        of_one = soak_worker.machine_seconds(core)
        self.assertTrue(all(one <= both for one, both in zip(of_one, soak_worker.machine_seconds())))


if __name__ == "__main__":
    unittest.main()
