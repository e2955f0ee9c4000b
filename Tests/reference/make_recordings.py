#!/usr/bin/python3
"""Writes recordings whose faults are known, a line of JSON each: make_recordings.py SEED COUNT

A recorder keeps a grid, or sleeps for an interval after each capture. It leaves captures out, is late, pauses, and its clock drifts. Nothing
here looks at the instants again: the faults are those that were made. Three sound captures follow each fault, since faults side by
side cannot be told apart.
"""
import json
import random
import sys


def recording(rng):
    keeps_grid = rng.random() < 0.5
    interval = rng.randint(200, 5000)
    jitter = rng.choice([0, 0.02, 0.05, 0.08])
    drift = rng.choice([0, 0, 0.0005, -0.0005])
    dropping, lateness, pausing = rng.choice([0, 0.03, 0.1]), rng.choice([0, 0.05, 0.15]), rng.choice([0, 0, 0.02])
    step = interval * (1 + drift)
    planned = 1_767_859_512_340.0
    # A capture of a recorder that sleeps, and is later than this, looks as if one was missing.
    latest = 1.5 if keeps_grid else 0.85
    instants, late, pauses, missing = [], [], [], 0
    sound = 0
    count = rng.randint(30, 200)
    for number in range(count):
        delay = 0.0
        if number > 3 and number < count - 4 and sound >= 3:
            fault = rng.random()
            if fault < dropping:
                missing, sound = missing + 1, 0
                planned += step
                continue
            if fault < dropping + lateness:
                delay, sound = rng.uniform(0.65, latest) * interval, -1
            elif fault < dropping + lateness + pausing:
                pause = max(5000, 5 * interval) * rng.uniform(1.3, 9)
                planned, sound = planned + pause, -1
                pauses.append(pause + step)
        sound += 1
        captured = planned + rng.uniform(0, jitter) * interval + delay
        instants.append(round(captured))
        if delay:
            late.append(delay)
        planned = (planned if keeps_grid else captured) + step
    return {
        "instants": sorted(instants), "intervalMs": interval, "missing": missing, "lateMs": sorted(late), "pausesMs": sorted(pauses),
        # By how much a figure may differ, because jitter hides its exact value.
        "slackMs": 2.5 * jitter * interval + 12,
    }


def main():
    rng = random.Random(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        print(json.dumps(recording(rng)))


main()
