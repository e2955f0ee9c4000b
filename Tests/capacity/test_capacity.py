"""Tests that the simulation behind Benchmarks/CAPACITY.md loses and duplicates no batch and agrees with queueing
theory, and that docs/capacity.md matches its inputs."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Benchmarks"))

import capacity
from simulation import Mishap, Setup, Simulation

ALL = (Mishap(100, "deaths", share=0.5), Mishap(200, "freeze", lasts=120, share=0.5), Mishap(300, "queue", lasts=20),
       Mishap(500, "store", lasts=60, share=5), Mishap(700, "queue", lasts=5), Mishap(710, "deaths", share=0.9))


def run(mishaps=(), workers=5, slots=4, rate=30.0, seed=1, seconds=1_000, work=0.4, drain=0):
    return Simulation(Setup(lambda _: rate, rate, seconds, workers, slots, work, mishaps=mishaps, seed=seed, drain=drain)).run()


class SimulationTests(unittest.TestCase):
    def test_every_submitted_batch_is_always_published_or_waiting(self):
        for seed in range(5):
            one = run(ALL, seed=seed)
            self.assertEqual(len(one.born), len(one.delays) + one.owed)
            self.assertEqual(sum(one.published), len(one.delays))

    def test_every_batch_is_published_once_in_spite_of_failures(self):
        for seed in range(5):
            one = run(ALL, seed=seed, drain=2_000)
            self.assertEqual((one.owed, len(one.delays)), (0, len(one.born)))
            self.assertEqual((len(one.queue), len(one.pending)), (0, 0))
            self.assertEqual(sorted(one.free), [worker for worker in range(5) for _ in range(4)])
            self.assertGreater(one.redelivered, 0)
            self.assertGreater(one.requeued, 0)
            self.assertGreater(one.failed, 0)
            self.assertGreater(one.twice, 0)

    def test_without_failures_no_batch_is_encoded_twice(self):
        one = run()
        self.assertEqual((one.twice, one.redelivered, one.requeued, one.failed), (0, 0, 0, 0))

    def test_without_a_reconciler_a_lost_queue_loses_batches(self):
        lost = Setup(lambda _: 30.0, 30.0, 500, 5, 2, 0.4, reconcile=1e9, mishaps=(Mishap(100, "queue"),), drain=2_000)
        self.assertGreater(Simulation(lost).run().owed, 0)

    def test_equal_seeds_give_equal_runs_and_different_seeds_differ(self):
        self.assertEqual(run(ALL).delays, run(ALL).delays)
        self.assertNotEqual(run(ALL).delays, run(ALL, seed=2).delays)

    def test_wait_for_one_slot_agrees_with_queueing_theory(self):
        # The Pollaczek–Khinchine formula; service times are uniform between 0.5 and 1.5 times their mean.
        one = run(workers=1, slots=1, rate=0.7, work=1.0, seconds=60_000)
        waited = sum(one.delays) / len(one.delays) - 1
        self.assertAlmostEqual(waited, 0.7 * (1 + 1 / 12) / (2 * 0.3), delta=0.12)

    def test_backlog_of_too_few_workers_grows_by_the_missing_capacity(self):
        one = run(workers=1, slots=4, rate=15.0)
        self.assertAlmostEqual(one.owed, 1_000 * (15 - 4 / 0.4), delta=250)


class PageTests(unittest.TestCase):
    def test_the_page_matches_its_inputs(self):
        load = capacity.Load(capacity.Inputs())
        page = capacity.HERE.parent / "docs" / "capacity.md"
        self.assertEqual(page.read_text(), capacity.page(load), "make capacity")
        self.assertTrue((capacity.HERE / "CAPACITY.md").read_text().endswith(capacity.inputs(load)), "make capacity")

    def test_the_parts_of_a_day_add_up(self):
        load = capacity.Load(capacity.Inputs(hls=True))
        self.assertAlmostEqual(load.batches, 15e6)
        # 20 frames, 4 segments: by hand from the tables of this version.
        jpeg = {name: capacity.JPEG[name]["cpu"] for name in ("s01", "s02", "s04", "s08")}
        pictures = 20 * (0.3 * jpeg["s01"] + 0.3 * jpeg["s02"] + 0.2 * jpeg["s04"] + 0.2 * jpeg["s08"])
        self.assertAlmostEqual(load.pictureMs, pictures)
        self.assertAlmostEqual(load.requests["PUT"] / load.batches, 1 + 4 + 4 + 1 + 1 + 1 + 1 + 2.1 + 4 + 4 / 15)
        self.assertAlmostEqual(load.costs()["PUT requests"], load.requests["PUT"] / 1e3 * 0.005)
        self.assertGreater(load.bytesKept, capacity.Load(capacity.Inputs()).bytesKept * 1.5)
        self.assertLess(sum(load.costs().values()), sum(load.costs("x86").values()))

    def test_packs_cost_as_little_as_the_page_says(self):
        load = capacity.Load(capacity.Inputs(packed=True))
        # The producer's, the pack, the head; at the end of a session of 15 batches six more.
        self.assertAlmostEqual(load.requests["PUT"] / load.batches, 3 + 6 / 15)
        self.assertLess(sum(load.costs().values()) / 1e3, 0.45)

    def test_ten_times_the_sessions_need_ten_times_the_resources(self):
        one, ten = (capacity.Load(capacity.Inputs(sessions=amount)) for amount in (1e6, 1e7))
        for what in ("frames", "batches", "segments", "meanCores", "bytesKept", "batchesAtPeak"):
            self.assertAlmostEqual(getattr(ten, what), 10 * getattr(one, what), delta=1)

    def test_the_hours_add_up_to_the_day(self):
        load = capacity.Load(capacity.Inputs())
        self.assertAlmostEqual(sum(load.share(hour) for hour in range(24)), 24)


if __name__ == "__main__":
    unittest.main()
