#!/usr/bin/python3
"""Disturbs the worker, and checks that no batch is lost, duplicated or half published.

The parts kill the worker before every call that changes a file, make every call on the spool fail once, fill the disk,
kill eight workers at random, and cut the power. After each, the output must equal that of an undisturbed run, byte for
byte. The part deletions kills `delete` in the same way: the session must be whole or gone.

Usage: torture.py [--short] [--minutes MINUTES] [PART...]

PARTS: kills failures disk workers power deletions; by default all. --short takes a sample of each. --minutes repeats the part
workers, with different random numbers each round, for this many minutes. ENCODER_WORKER names the program.
"""
import argparse
import time

from calls import failures, kills, power
from crowd import disk, workers
from deletions import deletions

PARTS = {"kills": kills, "failures": failures, "disk": disk, "workers": workers, "power": power,
         "deletions": deletions}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("parts", nargs="*", metavar="PART")
    options = parser.parse_args()
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    end = time.monotonic() + 60 * options.minutes
    broken = sum(PARTS[part](options.short) for part in options.parts or PARTS)
    seed = 1
    while time.monotonic() < end:
        seed += 1
        broken += workers(options.short, seed)
    raise SystemExit(1 if broken else 0)


if __name__ == "__main__":
    main()
