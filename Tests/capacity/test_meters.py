"""Tests that the meters of `make bench` count what perf and valgrind say, and that only a whole run writes pages."""
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Benchmarks"))

import bench
import meters
import page
import summary
from sessions import OURS, SEGMENTS, SESSIONS

# A perf that writes these lines to the file after -o, else to standard error, and runs what follows `--`.
PERF = """#!/bin/sh
log=/dev/stderr
while [ "$1" != -- ]; do [ "$1" = -o ] && log=$2; shift; done
shift
"$@" || exit
cat >$log <<'END'
%s
END
"""
# A valgrind that writes a log for each of two processes, and runs the command.
VALGRIND = """#!/bin/sh
for option; do case $option in --log-file=*) folder=${option#--log-file=} ;; --*) ;; *) break ;; esac; shift; done
echo "==1== %s : 30" >"${folder%%/%%p}/1"
echo "==2== Collected : 12" >"${folder%%/%%p}/2"
exec "$@"
"""
UNSUPPORTED = "<not supported>,,instructions:u,0,100.00,,"
COUNTED = "# started on Mon\n\n700,,cpu_core/instructions:u/,9,50.00,,\n42,,cpu_atom/instructions:u/,9,50.00,,"


class MeterTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path("/usr/bin:/bin")

    def path(self, *others):
        patch = mock.patch.dict(os.environ, PATH=":".join((str(self.folder), *others)))
        patch.start()
        self.addCleanup(patch.stop)

    def program(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)

    def test_perf_counts_all_kinds_of_cores(self):
        self.program("perf", PERF % COUNTED)
        meter = meters.counter(self.folder)
        self.assertIsInstance(meter, meters.Perf)
        self.assertEqual(meter.run(["true"]).instructions, 742)

    def test_valgrind_counts_where_the_cpu_has_no_counter_although_perf_ends_with_0(self):
        self.program("perf", PERF % UNSUPPORTED)
        self.program("valgrind", VALGRIND % "Collected")
        meter = meters.counter(self.folder)
        self.assertIsInstance(meter, meters.Valgrind)
        self.assertEqual(meter.run(["true"]).instructions, 42)

    def test_a_process_without_a_count_is_an_error(self):
        self.program("valgrind", VALGRIND % "Terminated")
        with self.assertRaises(SystemExit):
            meters.Valgrind(self.folder).run(["true"])
        self.program("perf", PERF % UNSUPPORTED)
        with self.assertRaises(SystemExit):
            meters.Perf().run(["true"])

    def test_a_machine_without_both_names_the_command_that_installs_them(self):
        self.path()
        with self.assertRaisesRegex(SystemExit, "scripts/setup bench"):
            meters.counter(self.folder)


class PageTests(unittest.TestCase):
    def row(self, **figures):
        return {"cpu": 1, "wall": 1, "memory": 1, "bytes": 4_000, "ssim": 0.99, **figures}

    def readme(self, rows):
        return summary.readme({"jpeg": [{"name": "s01", "kind": "JPEG", "rows": rows}]})

    def test_the_readme_quotes_ratios_of_instructions_and_none_of_cpu_time(self):
        names = [*SEGMENTS.values(), *SESSIONS.values()]
        rows = {name: self.row(instructions=60 * (place + 2), rounds=[4.4, 7.0]) for place, name in enumerate(names)}
        found = self.readme({OURS: self.row(instructions=60)} | rows)
        label = "× ours: reading, typing, idle screen"
        self.assertIn(f"| instructions, {label} | 1 | 2.0, –, – | 4.0, –, – |", found)
        self.assertIn(f"| instructions with `-preset veryfast`, {label} | 1 | 3.0, –, – | 5.0, –, – |", found)
        self.assertNotIn("CPU", found)
        self.assertNotIn("4.4", found)

    def test_the_readme_has_no_row_without_a_figure_to_compare_with(self):
        found = self.readme({OURS: self.row(), SEGMENTS["ultrafast"]: self.row()})
        self.assertIn("| kB a frame: reading, typing, idle screen | 4.0, –, – | 4.0, –, – | – |", found)
        self.assertNotIn("| instructions", found)

    def test_nothing_is_written_if_a_page_has_no_place_for_a_figure(self):
        results = json.loads(page.RESULTS.read_text())
        chart = SimpleNamespace(sessions=self.fail, ratios=self.fail)
        with mock.patch.dict(sys.modules, chart=chart), mock.patch.object(Path, "write_text") as write:
            with mock.patch.object(page, "quotes", return_value=[("README.md", "^no such line$", "")]):
                with self.assertRaises(SystemExit):
                    page.write(results)
        write.assert_not_called()


class RunTests(unittest.TestCase):
    def run_bench(self, *arguments, failing=None, corpus=Path("corpus")):
        """Returns whether a run of parts that measure nothing writes the pages."""
        def measure(part):
            if part == failing:
                raise KeyboardInterrupt
            return []

        made = SimpleNamespace(meter=meters.Valgrind(None), measure=measure)
        with (mock.patch.object(bench, "Bench", return_value=made), mock.patch.object(page, "text", return_value=""),
              mock.patch.object(bench.pictures, "corpus", return_value=corpus), mock.patch("builtins.print"),
              mock.patch.object(page, "write") as write,
              mock.patch.object(bench, "built", return_value="worker"),
              mock.patch.object(bench, "machine", return_value=""),
              mock.patch.object(sys, "argv", ["bench.py", *arguments])):
            try:
                bench.main()
            except KeyboardInterrupt:
                pass
            return write.called

    def test_a_whole_run_over_the_usual_sessions_writes_the_pages(self):
        self.assertTrue(self.run_bench())

    def test_a_partial_or_interrupted_run_or_one_of_other_sessions_leaves_the_pages_alone(self):
        self.assertFalse(self.run_bench("jpeg", "png"))
        self.assertFalse(self.run_bench("--corpus", "other"))
        self.assertFalse(self.run_bench(corpus=None))
        self.assertFalse(self.run_bench(failing="profile"))


if __name__ == "__main__":
    unittest.main()
