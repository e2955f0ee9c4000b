"""The page of soak.py."""

import os
import platform
import re
import subprocess
from datetime import date
from pathlib import Path

from remote import CORES
from soak_figures import LIMITS, percentile
from soak_load import BATCHES, FRAMES, LONG, PHASES, TICK, UNDISTURBED
from soak_queues import Store
from soak_screens import HEIGHT, WIDTH

# The undisturbed phases by kind and half.
STEADY, BURSTS = ([[phase for phase in range(UNDISTURBED, PHASES) if phase % 2 == kind
                    and (phase >= (UNDISTURBED + PHASES) // 2) == half] for half in (False, True)] for kind in (0, 1))


def page(parts, films, share, jobs):
    """Returns the text. `films` has the facts of soak_screens.py."""
    first = parts[0]
    others = f"The load, Redis and the store {'keep to another one' if len(CORES) > 1 else 'share it'}"
    return f"""# An hour of live sessions

`make soak MINUTES={first.length * len(parts) / 60:g}`, {date.today()}, {machine()}.

{verdict(parts, share)}

![Latency, waiting batches, CPU, memory and open files over time](soak.svg)

- **Load.** Live sessions capture a screen of {WIDTH}×{HEIGHT} pixels each second, and hand over a batch of {FRAMES} captures each
  {TICK} seconds. One session in {LONG} lives through the whole part. The others end after {BATCHES} batches, and new ones begin.
  [The screens](#the-screens) are drawn before the run.
- **Sessions.** There are as many as need {share:.0%} of one CPU. Short loads before each part measure the CPU of a batch.
- **CPUs.** The worker and its decoders keep to one CPU (`taskset`). {others}.
- **Open loop.** The time of each arrival is fixed in advance. A slow worker shows as latency, and does not slow the load down.
- **Phases.** {PHASES} phases of {first.length / PHASES:.0f} s take turns: the sessions' batches arrive at random instants of
  the {TICK} seconds, or all at once (shaded).
- **Latency** is the time from the rename into `incoming/`, or from the entry in the queue's stream, to the arrival of the batch's
  event. The segments are durable then. The worker asks a queue for new batches each 200 ms, which adds 100 ms in the mean to arrivals that
  are spread.
- **Restarts.** The worker gets SIGTERM in a steady phase, and SIGKILL in the middle of a burst (dotted). It starts again at once.
- **The worker** is `run --json --jobs {jobs}` with its defaults: it decodes each session in the sandbox. The spool and Redis' file
  are on the disk of this machine. The store keeps objects in memory.

| | {head(*(part.title for part in parts))}
{rows(summary(parts))}

## Flat over time

The two halves of the time behind the last restart: medians of samples, and percentiles of all latencies. Growth is that of the second
half: the median slope of all pairs of samples (Theil and Sen), times its length. A run fails if growth is above its limit. The first half
does not count: [the memory of a worker](LIMITS.md#memory) rises for some nine minutes after its start.

{rows(flat(parts), "", "first half", "second half", "growth", "limit")}

## Restarts

Latency and waiting are those of the batches that were not published at the signal, or arrived within four seconds of it.

{rows(restarts(parts), "", "signal", "ends after, s", "first event after, s", "longest latency, s", "most waiting")}

{leases(parts)}A run also fails in these cases:

- A batch is lost, quarantined, or published twice with other content.
- A session that ended has no event of its end, or two different ones.
- The index of a session differs from the events of its batches. All sessions are compared.
- `verify` finds a fault. It read {" and ".join(f"{part.verified[0]} sessions with {part.verified[1]} segments" for part in parts)}.
- Batches still wait a minute after the last arrival. There is no limit of latency.

## The screens

They are like [sessions of the corpus](RESULTS.md) in content, bytes, and in how many captures differ from the one before.

{rows(screens(films), "session", "share", "JPEG quality", "kB a capture", "captures that differ")}
"""


def screens(films):
    for name, session, share, quality, size, changed in films:
        yield f"{name} ({session})", f"{share:.0%}", quality, f"{size / 1e3:.0f}", f"{changed:.0%}"


def verdict(parts, share):
    live = " and ".join(f"{part.sessions} live sessions through {part.title}" for part in parts)
    batches = " and ".join(number(len(part.batches)) for part in parts)
    used = " and ".join(f"{part.cpu():.0%}" for part in parts)
    waits = "\n".join(f"- {part.title}: {latencies(part, sum(STEADY, []))}" for part in parts)
    return (f"**One CPU serves {live},** and is in use for {used} by worker and decoders ({share:.0%} is wanted).\n"
            f"Nothing was lost, and nothing grew, in {batches} batches.\n"
            f"Latency from rename to publish (p50, p95, p99, longest) while the sessions' batches arrive one by one:\n\n{waits}")


def number(value):
    return f"{value:,}".replace(",", " ")


def summary(parts):
    cells = lambda text, value: (text, *map(value, parts))
    yield cells("live sessions; batches a second", lambda part: f"{part.sessions}; {part.arrivals:g}")
    yield cells("published batches; sessions that ended", lambda part: f"{number(len(part.batches))}; {number(part.ledger.removed)}")
    yield cells("lost, quarantined, published twice with other content", lambda part: len(part.ledger.faults))
    yield cells("events that a restart repeated", lambda part: part.ledger.repeated)
    for name, phases in (("spread", sum(STEADY, [])), ("bursts", sum(BURSTS, [])), ("all, with the restarts", range(PHASES))):
        yield cells(f"latency, {name}: p50, p95, p99, longest", lambda part, phases=phases: latencies(part, phases))
    yield cells("CPU ms a batch: worker and decoders", lambda part: f"{part.cpu_of_batch:.1f}")
    yield cells("the worker's CPU: worker and decoders; other programs; stolen by the host",
                lambda part: f"{part.cpu():.1%}; {part.foreign[1]:.1%}; {part.cpu('stolen'):.1%}")
    yield cells("cores in use by other programs, on all CPUs", lambda part: f"{part.foreign[0]:.2f}")
    yield cells("cores in use: the load, servers", lambda part: ", ".join(
        f"{name} {used / (part.drained - part.start):.2f}" for name, used in part.others.items()))
    yield cells("lateness of arrivals: p50, p99, longest", lambda part: quantiles(sorted(part.lag), (0.5, 0.99, 1)))
    yield cells("from the last arrival to the last event", lambda part: f"{part.drained - part.end:.1f} s")


def quantiles(values, shares):
    return ", ".join(span(percentile(values, share)) for share in shares)


def latencies(part, phases):
    return quantiles(part.latencies(phases), (0.5, 0.95, 0.99, 1))


def span(seconds):
    return f"{seconds * 1e3:.0f} ms" if seconds < 0.9995 else f"{seconds:.1f} s"


def flat(parts):
    for part in parts:
        for name, text in (("rss", "resident memory of the worker, MB"), ("memory", "own pages of worker and decoders, MB"),
                           ("descriptors", "open files of worker and fork server")):
            yield (f"{part.title}: {text}", *(f"{part.median(name, half):.1f}" for half in (0, 1)), f"{part.growth(name):+.2f}",
                   LIMITS[name])
        yield (f"{part.title}: cores in use by worker and decoders", *(f"{part.cpu(half=half):.2f}" for half in (0, 1)), "", "")
        for text, halves in (("spread", STEADY), ("bursts", BURSTS)):
            yield f"{part.title}: latency, {text}: p50, p95, p99, longest", *(latencies(part, half) for half in halves), "", ""


def restarts(parts):
    for part in parts:
        for restart in part.restarts:
            first, longest, waiting = part.after(restart)
            yield part.title, restart.signal, f"{restart.endS:.2f}", f"{first:.2f}", f"{longest:.2f}", waiting


def leases(parts):
    return "" if all(part.title != Store.title for part in parts) else (
        "In a spool, the next worker of the same host takes the batches of a killed worker over at once. In a queue they wait for the end\n"
        "of the lease (`--lease`, 60 s).\n\n")


def head(*names):
    return " | ".join(names) + " |\n|---|" + "--:|" * (len(names))


def rows(table, *names):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in table]
    return "\n".join(["| " + " | ".join(names) + " |", "|---|" + "--:|" * (len(names) - 1)] * bool(names) + lines)


def machine():
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    redis = subprocess.run(["redis-server", "--version"], capture_output=True, text=True).stdout.split()[2].removeprefix("v=")
    return (f"{os.cpu_count()} × {model.group(1) if model else platform.machine()} (a virtual machine whose cores others use, too), "
            f"Linux {platform.release().split('-')[0]}, Redis {redis} with `appendonly yes`")
