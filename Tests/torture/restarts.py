"""Stops `collect` and workers at random while recorders hand in pictures, and starts them again. In the end each acknowledged picture
is shown at its instant, and each session that was asked to end has ended, once. referee.py has the rule.

    restarts.py WORKER [--runs 1] [--seed 1] [--jobs 1] [--scenario NAME] [--calm] [--orderly] [--keep DIR]

WORKER is the program. Run number N has the seed SEED + N, so `--runs 1 --seed S` repeats one run as far as the machine's timing does.
The scenarios: `collect` (a folder, or some; a worker, or none until the end), `workers` (the same with two workers on one spool),
`sender` (`collect --to` a worker elsewhere),
`ingest` (pictures over HTTP into a spool), `store` and `packed` (the same with a queue and a store, in both layouts) and `upload` (a spool
whose sessions go into a store at their end; these three are skipped without redis-server or moto).
Stops are SIGTERM, SIGKILL and, where this user can mount a small file system, a full disk. Recorders send late, repeated and
contradicting pictures, lose their network, and their clocks jump. --calm stops nothing; --orderly has recorders without such habits.

The exit status is 1 after a fault. Each fault says what was sent, and where it is now."""
import argparse
import collections
import concurrent.futures
import os
import random
import shutil
import sys
import tempfile

import peers
import spool as spools
from scenarios import REMOTE, SCENARIOS

# Faults of a run that are printed.
MOST = 20


def play(options, seed, hosts):
    """Plays the run of a seed, and prints a line, and its faults. Returns the faults."""
    kinds = [SCENARIOS[options.scenario]] if options.scenario else [
        kind for kind in SCENARIOS.values() if hosts or kind not in REMOTE]
    with tempfile.TemporaryDirectory(prefix="torture-") as directory:
        run = random.Random(seed).choice(kinds)(options, seed, directory, hosts)
        try:
            run.play()
        finally:
            run.clean()
            if options.keep:
                shutil.copytree(directory, os.path.join(options.keep, run.name), dirs_exist_ok=True)
    lines = [str(run)] + [f"{fault.kind}: {fault.text}" for fault in run.faults[:MOST]]
    if len(run.faults) > MOST:
        lines.append(f"and {len(run.faults) - MOST} faults more")
    print("\n".join(f"restarts: seed {seed}: {line}" for line in lines), flush=True)
    return run.faults


def summary(options, found):
    """Prints the numbers of faults by kind, with a seed of each. Returns the exit status."""
    counts, seeds = collections.Counter(), {}
    for seed, faults in sorted(found.items()):
        for fault in faults:
            counts[fault.kind] += 1
            seeds.setdefault(fault.kind, seed)
    bad = sum(1 for faults in found.values() if faults)
    print(f"restarts: {len(found)} runs, {bad} with faults" + "".join(
        f"; {count} × {kind} (first: seed {seeds[kind]})" for kind, count in counts.most_common()))
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("worker", metavar="WORKER", type=os.path.abspath)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="runs at once")
    parser.add_argument("--scenario", choices=SCENARIOS)
    parser.add_argument("--calm", action="store_true", help="stop nothing")
    parser.add_argument("--orderly", action="store_true", help="no late, repeated or contradicting pictures, no jumps of clocks")
    parser.add_argument("--keep", metavar="DIR", help="copy what each run has left into DIR/SCENARIO-SEED")
    options = parser.parse_args()
    if why := None if options.calm else spools.unshare_mounts():
        spools.skip("restarts: full disks", why)
    hosts = None
    if options.scenario is None or SCENARIOS[options.scenario] in REMOTE:
        if why := peers.missing():
            spools.skip("restarts: store", why)
            if options.scenario:
                return 0
        else:
            hosts = peers.Peers()
    try:
        seeds = range(options.seed, options.seed + options.runs)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            try:
                found = dict(zip(seeds, pool.map(lambda seed: play(options, seed, hosts), seeds)))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    finally:
        if hosts:
            hosts.stop()
    return summary(options, found)


if __name__ == "__main__":
    sys.exit(main())
