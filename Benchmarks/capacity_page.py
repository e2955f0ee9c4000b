"""The page and the chart of capacity.py."""
import dataclasses

import drawing

SIZES = (1e4, 1e5, 1e6, 1e7)


# The page above this heading needs no simulation.
SIMULATED = "## When something goes wrong"


def page(load, Load, days, events, scale, redis, s3, mix, prices):
    at = lambda **changes: Load(dataclasses.replace(load.inputs, **changes))
    i = load.inputs
    return f"""# Capacity, on paper

Made by `make capacity` (`capacity.py`, where all inputs stand in tables to be changed; `simulation.py`). Nothing here was run at
this size: what one frame, one batch and one Redis entry cost was measured ([results](RESULTS.md)), the rest is arithmetic and a
simulation, on assumptions that are named. A core is one of the two on which the results were measured.

![Waiting batches over a day, and after failures](capacity.svg)

## Assumptions

{number(i.sessions)} sessions a day of {i.minutes:g} minutes in the mean, {i.framesASecond:g} frame a second, in batches of
{i.batchSeconds:g} s ({load.segmentsABatch:g} segments each). The busiest hour ({i.busiest}:00) has {load.peak:g} times the mean, the
quietest {1 - i.swing:.1f}. Of the mix below follow {load.frameMs:.2f} ms of CPU and {load.bytesAFrame / 1e3:.1f} kB a frame. That screens are
750×1334 is part of it; the share of frames that repeat the one before is in the sessions: half of them in reading, 98 % in idle ones.

| sessions | share | CPU ms a frame | bytes a frame | bytes of a captured JPEG |
|---|--:|--:|--:|--:|
{rows((name, f"{share:.0%}", f"{cpu:.2f}", number(kept), number(captured)) for name, (share, cpu, kept, captured) in mix.items())}

Measured beside that: {i.batchMs} ms of CPU a batch, {number(i.manifestBytes)} bytes of manifest and {i.indexBytes:g} bytes in `session.json` a segment;
of Redis {i.entryBytes:g} bytes an entry, {i.pendingBytes:g} more while it is in somebody's hands, {i.appendedBytes:g} bytes of its file a batch and
{i.redisUs:g} µs of its one thread. Assumed: {i.requestCPUMs} ms of CPU a request; {i.getMs:g} ms until a GET is answered, {i.putMs:g} ms until
anything else is, one after the other.

## A day

| what | a day | in the busiest hour |
|---|--:|--:|
| frames | {number(load.frames)} | {number(load.frames / 86_400 * load.peak)} a second |
| batches | {number(load.batches)} | {number(load.batchesAtPeak)} a second |
| CPU a batch, ms; and waiting for the store | {load.cpu * 1e3:.0f}; {load.wait * 1e3:.0f} | |
| cores that work | {load.meanCores:.0f} | {load.meanCores * load.peak:.0f} |
| cores to have, {i.used:.0%} of them used | | {load.cores:.0f} |
| workers of {i.coresAWorker} cores, with `--jobs {round(load.jobsACore * i.coresAWorker)}` | | {load.workers} |
| memory of a worker; of all | | {memory(load) / 1e3:.1f} GB; {load.workers * memory(load) / 1e3:.0f} GB |
| network, captured frames in (to the store, and again to workers) | {size(load.bytesIn)} | {load.bytesIn * 8 / 86_400 * load.peak / 1e9:.1f} Gbit/s |
| network, published | {size(load.bytesKept + load.indexWritten)} | {(load.bytesKept + load.indexWritten) * 8 / 86_400 * load.peak / 1e9:.1f} Gbit/s |
| kept | {size(load.bytesKept)} | {size(load.bytesKept * 365)} a year |
| Redis, commands | {number(sum(load.redis.values()))} | {number(sum(load.redis.values()) / 86_400 * load.peak)} a second |
| Redis, its thread | | {load.batchesAtPeak * i.redisUs / 1e6:.1%} |
| Redis, memory when an hour of the busiest waits | | {load.batchesAtPeak * 3_600 * (i.entryBytes + i.pendingBytes) / 1e6:.0f} MB |
| Redis, appended to its file | {size(load.batches * i.appendedBytes)} | {load.batchesAtPeak * i.appendedBytes / 1e3:.0f} kB/s |

A batch waits for the store {load.wait / load.cpu:.1f} times as long as it computes. With as many jobs as cores, most cores would be idle: that is
why `--jobs` is {load.jobsACore:.1f} times the cores. Requests that go out at once instead of one after the other would lower it.

| hour | batches a second | cores that work | cores to have |
|---|--:|--:|--:|
{rows((f"{hour}:00", number(load.batches / 86_400 * load.share(hour)), f"{load.meanCores * load.share(hour):.0f}",
       f"{load.meanCores * load.share(hour) / i.used:.0f}") for hour in range(0, 24, 2))}

## Requests to the store and the queue

| request | of a batch | a day | a second in the busiest hour |
|---|--:|--:|--:|
{rows((name, f"{fixed + each * load.segmentsABatch:g}", number(load.batches * (fixed + each * load.segmentsABatch)),
       number(load.batchesAtPeak * (fixed + each * load.segmentsABatch)))
      for name, fixed, each in [(name, fixed, each) for name, (_, fixed, each) in s3.items()]
      + [(f"Redis: {name}", *counts) for name, counts in redis.items()])}

The reconciler lists what is owed: one LIST for each 1 000 batches. Not in here is `--hls`, which asks for a fragment a segment, the
playlist and an initialization a session (PUT), and twice a GET more: some 5 PUTs a batch, and nearly twice the bytes kept.

## Money

US dollars, by list prices that are inputs: as remembered for us-east-1 in 2025, and not looked up since. Put in your own.

| price | US $ |
|---|--:|
{rows((name, f"{price:g}") for name, price in prices.items())}

| part | a day | a month |
|---|--:|--:|
{rows((name, money(cost), money(cost * 30.4)) for name, cost in [*load.costs().items(), ("all", sum(load.costs().values()))])}

Compute follows the hours of the day. Stored for a year instead, it is {money(at(retention=365).costs()["storage, 365 days kept"] * 30.4)} a month for storage. Requests
cost most, not computing. Longer batches ask less, and are seen later:

| seconds a batch | PUT a day | requests, US $ a day | compute, US $ a day | cores in the busiest hour |
|---|--:|--:|--:|--:|
{rows((f"{seconds}", number(one.requests["PUT"]), money(asked(one)), money(one.costs()["compute"]), f"{one.meanCores * one.peak:.0f}")
      for seconds in (10, 20, 60, 300) for one in [at(batchSeconds=seconds)])}

## Other sizes

| sessions a day | cores to have | batches a second, busiest | PUT a second, busiest | Redis' thread | kept a year | US $ a month |
|---|--:|--:|--:|--:|--:|--:|
{rows((number(sessions), f"{one.cores:.1f}", f"{one.batchesAtPeak:.1f}", number(one.requests["PUT"] / 86_400 * one.peak),
       f"{one.batchesAtPeak * i.redisUs / 1e6:.2%}", size(one.bytesKept * 365), money(sum(one.costs().values()) * 30.4))
      for sessions in SIZES for one in [at(sessions=sessions)])}

## The first limits

By the number of sessions a day at which it does, if the rest stays as above.

| at | what | why |
|--:|---|---|
{rows(sorted_limits(load))}

Not by size: **the head of one session's index** is written by `If-Match`, so two batches of a session at once mean that one of them reads
and writes it again. Its batches are {i.batchSeconds:g} s apart and take {load.cpu + load.wait:.2f} s; only after an outage do several wait together. With
{round(load.cores * load.jobsACore)} at once among some {number(load.inputs.sessions * i.minutes / 1_440 * load.peak)} open sessions, some {min(1, load.cores * load.jobsACore / (load.inputs.sessions * i.minutes / 1_440 * load.peak)):.0%} of batches then meet
another of theirs, if they are taken in no order; one after the other a session takes at most {1e3 / (i.getMs + i.putMs):.0f} such writes a second.

{SIMULATED}

Simulated, a {scale}th of the batches with a {scale}th of the workers (so single numbers are coarser than they would be), numbers scaled up
again: four hours of the busiest rate with the cores to have, a lease of 60 s, a reconciler every 300 s. *Again*: batches whose message
went to another worker (lease) or was queued again (reconciler); *twice*: worked on to the end by two, published once. Recovery: until no more is
owed than twice the most before.

| what, half an hour in | delay: half within | 99 % | 99.9 % | longest | most owed | recovery | again: lease, reconciler | twice |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
{rows(event_row(name, run, scale) for name, run in events.items())}

A lost queue costs the reconciler's interval, no batch. Batches of workers that die wait for the lease, and everything
else goes on. When the store is slow, work fails and is tried again, and the free cores work off what has gathered.

A whole day, simulated at a {2 * scale}th, with fixed numbers of cores:

| cores | of what the mean takes | delay: half within | 99 % | longest | most owed |
|--:|--:|--:|--:|--:|--:|
{rows((f"{cores_of(run, load, 2 * scale):.0f}", f"{cores_of(run, load, 2 * scale) / load.meanCores:.2f} ×", time(run.delay(0.5)), time(run.delay(0.99)), time(run.delays[-1]),
       number(2 * scale * max(owed for _, owed in run.samples))) for run in days.values())}
"""


def sorted_limits(load):
    i, busiest = load.inputs, load.batchesAtPeak
    puts = load.requests["PUT"] / 86_400 * load.peak
    each = lambda amount, limit: i.sessions * limit / amount
    found = [
        (each(puts, i.putsAPrefix), "PUTs to one prefix of a bucket",
         f"{number(i.putsAPrefix)} a second for each prefix, {number(puts)} asked here; the store divides what is busy by itself, "
         "answering 503 until it has; ids that differ in their first letters, as random ones do, let it"),
        (each(load.meanCores * load.peak, 16 * i.used), "one machine of 16 cores", "the point at which a spool on one disk ends"),
        (each(busiest * i.nfsCallsABatch, i.nfsCallsASecond), "one NFS server",
         f"{i.nfsCallsABatch:g} calls a batch (measured, of few frames), {number(i.nfsCallsASecond)} a second (assumed)"),
        (each(busiest, 1e6 / i.redisUs), "Redis' one thread", f"{i.redisUs:g} µs a batch, measured with its client on the same cores"),
        (each(busiest * 3_600, 100_000), "a spool directory, after an hour without workers",
         "100 000 waiting cost 1.1 times what 100 do (measured); more was not measured"),
        (each(busiest * 86_400 * i.entryBytes, 8e9), "8 GB of Redis, after a day without workers",
         f"{i.entryBytes:g} bytes a waiting batch, all day as in the busiest hour"),
        (each(load.bytesIn * 8 / 86_400 * load.peak, 25e9), "25 Gbit/s into one place", "captured frames; workers on several machines share it"),
    ]
    return [(number(float(f"{at:.2g}")), what, why) for at, what, why in sorted(found)]


def memory(load):
    """Returns the memory of a worker, in MB: with two jobs, and for each additional job."""
    return load.inputs.workerMB + (load.jobsACore * load.inputs.coresAWorker - 2) * load.inputs.encoderMB


def asked(load):
    return sum(cost for part, cost in load.costs().items() if "requests" in part)


def cores_of(run, load, scale):
    return run.setup.workers * run.setup.slots * scale / load.jobsACore


def event_row(name, run, scale):
    recovery = run.recovery(1_800)
    return (name, *(time(run.delay(share)) for share in (0.5, 0.99, 0.999)), time(run.delays[-1]),
            number(scale * max(owed for _, owed in run.samples)),
            "" if name == "nothing" else "none" if recovery is None else time(recovery) if recovery else "at once",
            f"{number(scale * run.redelivered)}, {number(scale * run.requeued)}", number(scale * run.twice))


def rows(table):
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in table)


def number(value):
    return f"{value:,.0f}".replace(",", " ") if value >= 10 or value == round(value) else f"{value:.1f}"


def money(value):
    return f"{value:,.0f}".replace(",", " ") if value >= 100 else f"{value:.2f}"


def size(value):
    return next(f"{value / unit:.{0 if value >= 100 * unit else 1}f} {name}"
                for unit, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1, "B")) if value >= unit)


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
