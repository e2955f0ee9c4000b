"""The arithmetic of capacity.py: docs/capacity.md, and the last sections of Benchmarks/CAPACITY.md."""
import dataclasses

SIZES = (1e4, 1e5, 1e6, 1e7)


def page(load, Load, prices):
    i = load.inputs
    at = lambda **changes: Load(dataclasses.replace(i, **changes))
    all = (load, at(hls=True), at(packed=True), at(packed=True, hls=True), at(upload=True))
    price = lambda name: prices[name].dollars
    watched = i.minutes * 60 * i.framesASecond * load.bytesAFrame
    return f"""# Cost of a million sessions a day

`make capacity` computes this page from [figures of this version, prices and assumptions](../Benchmarks/CAPACITY.md#how-it-is-computed). Nobody has run the program at this size.
Your screens, sessions and prices differ: edit the tables at the head of `Benchmarks/capacity.py`, and run it again.

## The answer

{number(i.sessions)} sessions of {i.minutes:g} minutes, {i.framesASecond:g} frame a second, in batches of {i.batchSeconds:g} seconds, through a queue and a store, each day.
The last column is of spools on the workers' disks: sessions go into a store when they have ended.

| | plain | with `--hls` | with [`--layout packed`](queue-and-store.md#few-objects) | packed, with `--hls` | with [`--upload`](upload.md) |
|---|--:|--:|--:|--:|--:|
{rows(answers(all))}

Prices are those of us-east-1 without discounts, with SQS as the queue, and {i.retention:g} days kept. Requests to the store cost most, but for `--upload`.
Watching is not in the table: a viewer of a whole session loads {watched / 1e6:.1f} MB, so 1 000 views cost {money(watched * 1e3 / 1e9 * price("a GB to viewers"))} US $ at {price("a GB to viewers"):g} $ a GB.

## Other sizes

| seconds a batch, `--hls` | PUT a day | requests, US $ a day | compute, US $ a day | cores in the busiest hour |
|---|--:|--:|--:|--:|
{rows((f"{seconds}", number(one.requests["PUT"]), money(asked(one)), money(one.costs()["compute, arm64"]), f"{one.meanCores * one.peak:.0f}")
      for seconds in (10, 20, 60, 300) for one in [at(batchSeconds=seconds, hls=True)])}

Longer batches are seen later. Longer segments ask less, too; their bytes are taken as the same here:

| `--segment`, batches of 60 s, `--hls` | PUT a day | requests, US $ a day |
|---|--:|--:|
{rows((f"{seconds}", number(one.requests["PUT"]), money(asked(one)))
      for seconds in (5, 10, 30) for one in [at(batchSeconds=60, segmentSeconds=seconds, hls=True)])}

| sessions a day, `--hls` | vCPUs to have | batches a second, busiest | PUT a second, busiest | kept a year | US $ a month |
|---|--:|--:|--:|--:|--:|
{rows((number(sessions), f"{one.cores:.1f}", f"{one.batchesAtPeak:.1f}", number(one.requests["PUT"] / 86_400 * one.peak),
       size(one.bytesKept * 365), money(sum(one.costs().values()) * 30.4))
      for sessions in SIZES for one in [at(sessions=sessions, hls=True)])}

On one machine with a [spool](operations.md) there are no requests, and a disk instead of a store.
With `--upload` a session lies on one disk until it has ended; {i.localHours:g} hour of it is in the sum.

## The first limits

Sessions a day at which each is reached, without `--hls`:

| at | limit | why |
|--:|---|---|
{rows(sorted_limits(load))}

[Peaks and failures](../Benchmarks/CAPACITY.md) are simulated: dead workers, a lost queue, a slow store.
"""


def inputs(load, Load, tables, redis, sqs, mix, measured, prices, results):
    """Returns the sections of CAPACITY.md that follow the simulation."""
    i = load.inputs
    live = Load(dataclasses.replace(i, hls=True))
    packs, late = (Load(dataclasses.replace(i, **{kind: True})) for kind in ("packed", "upload"))
    both = Load(dataclasses.replace(i, packed=True, hls=True))
    columns = list(zip(tables, (live, both, late)))
    price = lambda name: prices[name].dollars
    return f"""
## How it is computed

- **Pictures**: {i.batchSeconds * i.framesASecond:g} frames of {load.frameMs:.2f} ms of CPU each make {load.pictureMs:.0f} ms a batch. The mix of sessions is below.
- **The batch itself**: {i.batchMs:.2f} ms, {i.decoderMs:g} ms for a new decoder process, and {i.segmentMs} ms for each of {load.segmentsABatch - 1:g} further segments.
- **Requests**: {load.requestsABatch:.1f} of the worker, {i.requestCPUMs} ms of CPU each; {live.requestsABatch:.1f} with `--hls`, {packs.requestsABatch:.1f} with `--layout packed`, {late.requestsABatch:.1f} with `--upload`.
- **Cores**: {load.cpu * 1e3:.0f} ms a batch, times {number(load.batches)} batches, by 86 400 seconds. The busiest hour has {load.peak:g} times the mean.
  {i.used:.0%} of the cores are in use then.
- **Jobs**: a batch waits {load.wait * 1e3:.0f} ms for the store. So `--jobs` is {load.jobsACore:.1f} times the cores.
- **Bytes**: {load.bytesAFrame / 1e3:.1f} kB a frame, {number(i.manifestBytes)} bytes of manifest and {i.indexBytes:g} bytes of `session.json` a segment. `--hls` keeps the video twice.
- **Money**: the vCPUs follow the load of each hour. {i.retention:g} days are kept.

| sessions | share | CPU ms a frame | bytes a frame | bytes of a captured JPEG |
|---|--:|--:|--:|--:|
{rows((name, f"{share:.0%}", f"{measured[key]['cpu']:.2f}", number(measured[key]['bytes']), number(captured)) for name, (share, key, captured) in mix.items())}

These are screens of 750×1334 pixels. Half of the frames repeat the one before in reading, and 98 % in idle sessions.

| input | measured or assumed |
|---|---|
| CPU and bytes a frame, CPU of a batch, memory | measured: [`make bench`](RESULTS.md), {results["date"]}, {results["machine"].split(",")[0]} |
| CPU of a decoder process and of further segments; requests of a batch | measured: [security](../docs/security.md), [queue and store](REMOTE.md#requests) |
| Redis: {i.entryBytes:g} bytes an entry, {i.pendingBytes:g} more in work, {i.redisUs:g} µs a batch | measured: Redis 7.0.15 |
| {sqs} requests to SQS a batch | assumed: one message a request |
| {i.requestCPUMs} ms of CPU a request with TLS; {i.getMs:g} ms for a GET, {i.putMs:g} ms for all others | assumed |
| a vCPU of the price list does what a core of the measurement does | assumed; arm64 was not measured |
| the mix, the length of sessions and batches, the busiest hour | assumed |

## Requests

| request, with `--hls` where it says so | of a batch, plain | packed | `--upload` | a day, plain | packed | `--upload` |
|---|--:|--:|--:|--:|--:|--:|
{rows((name, *(count(table.get(name), one) for table, one in columns), *(a_day(table.get(name), one) for table, one in columns))
      for name in {name: None for table in tables for name in table})}

| call of Redis | of a batch | a day |
|---|--:|--:|
{rows((name, f"{fixed + each * load.segmentsABatch:g}", number(load.batches * (fixed + each * load.segmentsABatch)))
      for name, (fixed, each) in redis.items())}

`reconcile` lists what is owed: one LIST for each 1 000 batches.

## Prices

US dollars, us-east-1, list prices without discounts. Check them before you plan; `Benchmarks/capacity.py` has their sources.

| price | US $ |
|---|--:|
{rows((name, f"{one.dollars:g}") for name, one in prices.items())}

| part, US $ a day | plain | with `--hls` | packed | packed, with `--hls` | `--upload` |
|---|--:|--:|--:|--:|--:|
{rows((part, *(money(one.costs()[part]) for one in (load, live, packs, both, late))) for part in load.costs())}
| all | {" | ".join(money(sum(one.costs().values())) for one in (load, live, packs, both, late))} |

On x86, compute is {", ".join(money(one.costs("x86")["compute, x86"]) for one in (load, live, packs, both, late))}. Redis with a replica costs {money(24 * price("Redis with a replica, an hour"))} instead of SQS.
"""


def answers(all):
    """The rows of the first table: its name, and a cell of each load."""
    cell = lambda name, value: (name, *(value(one) for one in all))
    return [
        cell("cores that work, on average; in the busiest hour", lambda one: f"{one.meanCores:.0f}; {one.meanCores * one.peak:.0f}"),
        cell("vCPUs to have in the busiest hour", lambda one: f"{one.cores:.0f}"),
        cell(f"workers of {all[0].inputs.coresAWorker} vCPUs, and their `--jobs`", lambda one: f"{one.workers}; {round(one.jobsACore * one.inputs.coresAWorker)}"),
        cell("memory of a worker", lambda one: f"{memory(one) / 1e3:.1f} GB"),
        cell("batches; segments", lambda one: f"{millions(one.batches)}; {millions(one.segments)}"),
        cell("PUT; GET and HEAD", lambda one: f"{millions(one.requests['PUT'])}; {millions(one.requests['GET'])}"),
        cell("captured frames, to the store and again to workers; `--upload`: to workers", lambda one: size(one.bytesIn)),
        cell("kept of a day; of a year", lambda one: f"{size(one.bytesKept)}; {size(one.bytesKept * 365)}"),
        cell("Redis: commands; its thread in the busiest hour", lambda one: f"{millions(sum(one.redis.values()))}; {one.batchesAtPeak * one.inputs.redisUs / 1e6:.0%}" if one.redis else ""),
        cell("US $ a day on arm64", lambda one: money(sum(one.costs().values()))),
        cell("US $ a day on x86", lambda one: money(sum(one.costs("x86").values()))),
        cell("US $ for 1 000 sessions, arm64", lambda one: money(sum(one.costs().values()) / one.inputs.sessions * 1e3)),
    ]


def count(request, load):
    return f"{request.of(load):.3g}" if request else ""


def a_day(request, load):
    return number(load.batches * request.of(load)) if request else ""


def sorted_limits(load):
    i, busiest = load.inputs, load.batchesAtPeak
    puts = load.requests["PUT"] / 86_400 * load.peak
    each = lambda amount, limit: i.sessions * limit / amount
    found = [
        (each(puts, i.putsAPrefix), "PUTs to one prefix of a bucket",
         f"{number(i.putsAPrefix)} a second for each prefix, {number(puts)} asked here; the store divides a busy prefix by itself, if "
         "session ids are random"),
        (each(load.meanCores * load.peak, 16 * i.used), "one machine of 16 cores", "the point at which a spool on one disk ends"),
        (each(busiest * i.nfsCallsABatch, i.nfsCallsASecond), "one NFS server",
         f"{i.nfsCallsABatch:g} calls a batch (measured, of few frames), {number(i.nfsCallsASecond)} a second (assumed)"),
        (each(busiest, 1e6 / i.redisUs), "Redis' one thread", f"{i.redisUs:g} µs a batch, measured with its client on the same cores"),
        (each(busiest * 3_600, 100_000), "a spool directory, after an hour without workers",
         "more waiting batches were not measured"),
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


def rows(table):
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in table)


def number(value):
    return f"{value:,.0f}".replace(",", " ") if value >= 10 or value == round(value) else f"{value:.1f}"


def millions(value):
    return f"{value / 1e6:.{0 if value >= 1e8 else 1}f} million"


def money(value):
    return f"{value:,.0f}".replace(",", " ") if value >= 100 else f"{value:.2f}"


def size(value):
    return next(f"{value / unit:.{0 if value >= 100 * unit else 1}f} {name}"
                for unit, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1, "B")) if value >= unit)
