"""CAPACITY.md and its chart: the simulation of capacity.py."""
import drawing
from capacity_page import number, rows


def page(load, days, events, scale):
    i = load.inputs
    return f"""# Peaks and failures, simulated

Made by `make capacity` (`simulation.py`). The load is that of [the cost of a million sessions a day](../docs/capacity.md), which is
[computed](#how-it-is-computed) below. A test checks the simulation against queueing theory.

![Waiting batches over a day, and after failures](capacity.svg)

## When something goes wrong

A {scale}th of the batches with a {scale}th of the workers (so single numbers are coarser than they would be), numbers scaled up
again: four hours of the busiest rate with the cores to have, a lease of 60 s, a reconciler every 300 s. *Again*: batches whose message
went to another worker (lease) or was queued again (reconciler); *twice*: worked on to the end by two, published once. Recovery: until no more is
owed than twice the most before.

| what, half an hour in | delay: half within | 99 % | 99.9 % | longest | most owed | recovery | again: lease, reconciler | twice |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
{rows(event_row(name, run, scale) for name, run in events.items())}

A lost queue costs the reconciler's interval, no batch. Batches of workers that die wait for the lease, and everything
else goes on. When the store is slow, work fails and is tried again, and the free cores work off what has gathered.

## A whole day

Simulated at a {2 * scale}th, with fixed numbers of cores:

| cores | of what the mean takes | delay: half within | 99 % | longest | most owed |
|--:|--:|--:|--:|--:|--:|
{rows((f"{cores_of(run, load, 2 * scale):.0f}", f"{cores_of(run, load, 2 * scale) / load.meanCores:.2f} ×", time(run.delay(0.5)), time(run.delay(0.99)), time(run.delays[-1]),
       number(2 * scale * max(owed for _, owed in run.samples))) for run in days.values())}

## Batches of one session at once

The head of a session's index is written by `If-Match`, so two batches of a session at once mean that one of them reads and writes it again.
Its batches are {i.batchSeconds:g} s apart and take {load.cpu + load.wait:.2f} s; only after an outage do several wait together. With
{round(load.cores * load.jobsACore)} at once among some {number(i.sessions * i.minutes / 1_440 * load.peak)} open sessions, some {min(1, load.cores * load.jobsACore / (i.sessions * i.minutes / 1_440 * load.peak)):.0%} of batches then meet
another of theirs, if they are taken in no order; one after the other a session takes at most {1e3 / (i.getMs + i.putMs):.0f} such writes a second.
"""


def cores_of(run, load, scale):
    return run.setup.workers * run.setup.slots * scale / load.jobsACore


def event_row(name, run, scale):
    recovery = run.recovery(1_800)
    return (name, *(time(run.delay(share)) for share in (0.5, 0.99, 0.999)), time(run.delays[-1]),
            number(scale * max(owed for _, owed in run.samples)),
            "" if name == "nothing" else "none" if recovery is None else time(recovery) if recovery else "at once",
            f"{number(scale * run.redelivered)}, {number(scale * run.requeued)}", number(scale * run.twice))


def time(seconds):
    return f"{seconds / 3_600:.1f} h" if seconds >= 5_400 else f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.1f} s"


def chart(days, events, scale, path):
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    drawing.start("capacity", 8, 9)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
    for cores, run in days.items():
        left.plot([4 + at / 3_600 for at, _ in run.samples[::30]], [2 * scale * owed for _, owed in run.samples[::30]],
                  label=f"{cores:.1f} × the mean")
    left.set(title="Batches owed over a day, by cores", xlabel="hour of the day", yscale="symlog", ylim=0)
    for name, run in events.items():
        right.plot([at / 60 for at, _ in run.samples[::3]], [scale * owed for _, owed in run.samples[::3]], label=name, linewidth=1)
    right.set(title="… in the busiest hours, when something goes wrong", xlabel="minutes", yscale="symlog", ylim=0)
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=6)
    drawing.save(figure, path)
