"""The page of soak.py."""

import os
import platform
import re
import statistics
import subprocess
from datetime import date
from pathlib import Path

from soak_figures import LIMITS, percentile
from soak_load import BATCHES, FRAMES, LONG, PHASES, TICK, UNDISTURBED
from soak_queues import Store

# The undisturbed phases by kind and half.
STEADY, BURSTS = ([[phase for phase in range(UNDISTURBED, PHASES) if phase % 2 == kind
                    and (phase >= (UNDISTURBED + PHASES) // 2) == half] for half in (False, True)] for kind in (0, 1))


def page(parts, size, costs, rates, share, most):
    """Returns the text. `rates` has the batches a second in memory and on the disk, if the run has its files in memory."""
    first = parts[0]
    return f"""# Throughput as a service

`make soak MINUTES={first.length / 60:g}`, {date.today()}, {machine()}.

{verdict(parts)}

![Latency, waiting batches, CPU, memory and open files over time](soak.svg)

- **Load.** {most} live sessions hand over a batch of {FRAMES} frames each {TICK} seconds. One session in {LONG} lives through the whole run. The
  others end after {BATCHES} batches, and new ones begin. Users are idle: the screen changes once in a batch. Frames have 96×160 pixels,
  because {os.cpu_count()} cores cannot encode {most / TICK:g} batches a second of real screens ([below](#real-screens)).
- **Open loop.** The time of each arrival is fixed in advance. A slow worker shows as latency, and does not slow the load down.
- **Phases.** {PHASES} phases of {first.length / PHASES:.0f} s take turns: the arrivals are spread evenly over the {TICK} seconds, or all sessions arrive at once (shaded).
- **Latency** is the time from the rename into `incoming/`, or from the entry in the queue's stream, to the arrival of the batch's
  event. The segments are durable then. The worker asks a queue for new batches each 200 ms, which adds 100 ms in the mean to arrivals that
  are evenly spread.
- **Restarts.** The worker gets SIGTERM in a steady phase, and SIGKILL in the middle of a burst (dotted). It starts again at once.
- **The worker** is `run --json` with its defaults: it decodes each session in the sandbox. With the store it has `--jobs {parts[-1].jobs}`.
  The load, Redis and the store share the {os.cpu_count()} cores with it. All files are {"in memory, where fsync costs next to nothing" if rates else "on a disk"}.

| | {head(*(part.title for part in parts))}
{rows(summary(parts))}

On a machine that cannot do that many batches, the run has fewer sessions: they take at most {share:.0%} of the rate of ready batches,
measured before the part.
{lowered(parts, most)}

## Flat over time

The two halves of the time behind the last restart: medians of samples, and percentiles of all latencies. Growth is the median slope of
all pairs of samples (Theil and Sen), times that time. A run fails if growth is above its limit.

{rows(flat(parts), "", "first half", "second half", "growth", "limit")}

## Restarts

Latency and waiting are those of the batches that were not published at the signal, or arrived within four seconds of it.

{rows(restarts(parts), "", "signal", "ends after, s", "first event after, s", "longest latency, s", "most waiting")}

{leases(parts)}A run also fails in these cases:

- A batch is lost, quarantined, or published twice with other content.
- The index of a session differs from the events of its batches. All sessions are compared.
- `verify` finds a fault. It read {" and ".join(f"{part.verified[0]} sessions with {part.verified[1]} segments" for part in parts)}.
- Batches still wait a minute after the last arrival. There is no limit of latency.

## Real screens

CPU of a worker for a batch of {FRAMES} captured frames ({size}, JPEG), each batch of another session, sandbox on, measured before the load.
The last column keeps 30 % of each core free.

{rows([(name, f"{cost:.1f}", f"{cost * most / TICK / 1e3:.1f}", f"{cost * most / TICK / 1e3 / 0.7:.1f}") for name, cost in [*costs.items(), ("mean", statistics.mean(costs.values()))]],
      "session", "CPU ms a batch", f"cores in use by {most} sessions", "cores to have")}
{disk(rates)}"""


def disk(rates):
    return "" if not rates else f"""
## Disk

Batches a second of ready ones in a spool, measured one after the other: {rates[0]:.0f} with all files in memory, and {rates[1]:.0f} with all files
on the disk of this machine.
"""


def verdict(parts):
    return (f"**Nothing was lost, and nothing grew:** {' and '.join(f'{number(len(part.batches))} batches through {part.title}' for part in parts)}.\n"
            f"Other programs on the machine used {' and '.join(f'{part.foreign:.1f}' for part in parts)} of its {os.cpu_count()} cores meanwhile, "
            "which adds to latency.")


def lowered(parts, most):
    few = [f"{part.title} ({part.sessions} sessions)" for part in parts if part.sessions < most]
    return f"That was so for {' and '.join(few)}." if few else "No part needed that."


def number(value):
    return f"{value:,}".replace(",", " ")


def summary(parts):
    cells = lambda text, value: (text, *map(value, parts))
    yield cells("live sessions; batches a second", lambda part: f"{part.sessions}; {part.arrivals:g}")
    yield cells("batches a second when all are ready, the best of some rounds", lambda part: f"{part.possible:.0f}")
    yield cells("published batches; sessions that ended", lambda part: f"{number(len(part.batches))}; {number(part.ledger.removed)}")
    yield cells("lost, quarantined, published twice with other content", lambda part: len(part.ledger.faults))
    yield cells("events that a restart repeated", lambda part: part.ledger.repeated)
    for name, halves in (("evenly spread", STEADY), ("bursts", BURSTS)):
        yield cells(f"latency, {name}: p50, p95, p99, longest", lambda part, halves=halves: latencies(part, sum(halves, [])))
    yield cells("CPU ms a batch: worker and decoders", lambda part: f"{part.cpu_of_batch:.1f}")
    yield cells("cores in use: worker and decoders; other programs", lambda part: f"{part.cpu():.2f}; {part.foreign:.2f}")
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
        for text, halves in (("evenly spread", STEADY), ("bursts", BURSTS)):
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
