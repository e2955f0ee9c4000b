#!/usr/bin/python3
"""Measures the cost of a queue and a store against a spool, and whether they scale.

    make remote                    the sessions of ../shared/corpus, or of fixtures/ if that directory is missing
    make remote CORPUS=DIR         DIR/<session>/jpg/<unix ms>.jpg

The same batches, tars of 10 and of 60 frames, are encoded from spools (one for each worker) and from a queue and a
store, in turn, ROUNDS times. The queue is redis-server with an append-only file. The store is that of the tests (moto,
which checks signatures). Wall-clock time is measured with a cheap store (remote_store.py), without latency and with the
latency that docs/capacity.md assumes. One worker has a core to itself, and the servers have the other one. Two workers have
a core each, which the servers share. CPU is user + system time of the workers and their decoder processes, without
their start. All servers are new for each run. Every run has to publish the same bytes. Writes Benchmarks/REMOTE.md.
"""

import collections
import dataclasses
import hashlib
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOTO, PLAIN, SLOW = "the tests' store", "a plain store", "a late store"
ROUNDS = 2
# Fewer rounds for these ways: they only show the number of requests, and the effect of latency.
FEW = {MOTO: 1, SLOW: 1}
TINY_ROUNDS = 6
# Frames of a batch, and how often each session is used; MOST limits the number of batches.
SIZES = {10: 2, 60: 4}
MOST = 6
BUCKET = "replay"
GET_MS, PUT_MS = 20, 35
LATE_JOBS = 8
IDLE_S = 10
START = 1_767_859_512_340
# Segments that a session has before a batch is added: none, an hour's, a day's.
LENGTHS = (0, 720, 17_280)
NEW = 90
ENVIRONMENT = {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "no_proxy": "127.0.0.1",
               "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "AWS_SESSION_TOKEN": ""}
CORES = sorted(os.sched_getaffinity(0))
HTTP = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def on(core):
    return ["taskset", "-c", str(core)] if len(CORES) > 1 and core is not None else []


class Servers:
    """A new Redis and a new store, on one core or on any."""

    def __init__(self, store, place, core, log=None):
        self.log = Path(log or place / "requests")
        self.log.touch()
        script = ([ROOT / "Tests/store/serve.py", BUCKET, self.log] if store == MOTO else
                  [ROOT / "Benchmarks/remote_store.py", self.log, *((GET_MS, PUT_MS) if store == SLOW else (0, 0))])
        self.store = subprocess.Popen([*on(core), "/usr/bin/python3", "-B", *map(str, script)], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        self.socket = place / "socket"
        self.redis = subprocess.Popen(
            [*on(core), "redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", place, "--appendonly", "yes",
             "--save", ""], stdout=subprocess.DEVNULL)
        self.endpoint = f"http://127.0.0.1:{int(self.store.stdout.readline())}"
        self.open = self.endpoint + ("/open" if store == MOTO else "") + f"/{BUCKET}"
        while subprocess.run(["redis-cli", "-s", self.socket, "PING"], capture_output=True).stdout.strip() != b"PONG":
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in (self.redis, self.store):
            server.kill()
            server.wait()

    def put(self, files):
        for key, file in files.items():
            HTTP.open(urllib.request.Request(f"{self.open}/run/{key}", file.read_bytes(),
                                             {"Content-Type": "application/octet-stream"}, method="PUT"))

    def add(self, batches):
        self.put({f"incoming/{batch.name}": batch for batch in batches})
        subprocess.run(["redis-cli", "-s", self.socket], check=True, stdout=subprocess.DEVNULL, text=True,
                       input="".join(f"XADD encoder-worker * batch {batch.name}\n" for batch in batches))

    def keys(self, prefix):
        """Returns the ETags by key."""
        found, after = {}, ""
        while True:
            page = HTTP.open(f"{self.open}?list-type=2&prefix=run/{prefix}&start-after={after}").read().decode()
            keys = re.findall(r"<Key>(.*?)</Key>", page)
            if not keys:
                return found
            found |= zip((key.removeprefix("run/") for key in keys),
                         re.findall(r"<ETag>(?:\"|&quot;|&#34;)?([0-9a-f]+)", page))
            after = keys[-1]

    def info(self):
        text = subprocess.run(["redis-cli", "-s", self.socket, "INFO", "everything"], check=True, capture_output=True, text=True)
        return dict(line.split(":", 1) for line in text.stdout.splitlines() if ":" in line)

    def redis_state(self):
        """Returns the microseconds of each command by name, CPU seconds, and bytes."""
        facts = self.info()
        commands = {name.removeprefix("cmdstat_"): re.match(r"calls=(\d+),usec=(\d+)", value).groups()
                    for name, value in facts.items() if name.startswith("cmdstat_")}
        return (collections.Counter({name: int(calls) for name, (calls, _) in commands.items() if name not in ("info", "ping")}),
                collections.Counter({name: int(usec) for name, (_, usec) in commands.items()}),
                float(facts["used_cpu_user"]) + float(facts["used_cpu_sys"]),
                int(facts["total_net_input_bytes"]) + int(facts["total_net_output_bytes"]))

    def store_cpu(self):
        fields = Path(f"/proc/{self.store.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass
class Run:
    cpu: float
    wall: float
    published: dict = None
    requests: collections.Counter = None
    refusals: int = 0
    storeBytes: int = 0
    storeCPU: float = 0
    commands: collections.Counter = None
    redisUs: int = 0
    redisCPU: float = 0
    redisBytes: int = 0

    def forget(self, start):
        """Subtracts the requests of `start`, a run without work."""
        self.requests, self.commands = self.requests - start.requests, self.commands - start.commands
        self.refusals -= start.refusals
        self.storeBytes -= start.storeBytes
        self.redisBytes -= start.redisBytes


def work(commands):
    """Runs commands side by side. Returns CPU seconds with their children, and wall-clock seconds."""
    start = time.monotonic()
    running = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                env={**os.environ, **environment}, text=True) for command, environment in commands]
    cpu = 0
    for child in running:
        said = child.stderr.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            sys.exit(f"{child.args}: {child.returncode}\n{said}")
        cpu += used.ru_utime + used.ru_stime
    return cpu, time.monotonic() - start


def cores(workers):
    """Returns the core of each worker, and those of the servers."""
    return ([CORES[-1]], CORES[0]) if workers == 1 else ([CORES[n % len(CORES)] for n in range(workers)], None)


def spools(worker, batches, workers, scratch, options=()):
    place = Path(tempfile.mkdtemp(dir=scratch))
    sessions = sorted({session(batch) for batch in batches}, key=lambda name: name[::-1])
    own = lambda batch: sessions.index(session(batch)) * workers // len(sessions)
    commands = []
    for number, core in enumerate(cores(workers)[0]):
        incoming = place / str(number) / "incoming"
        incoming.mkdir(parents=True)
        for batch in batches:
            if own(batch) == number:
                shutil.copy(batch, incoming)
        commands.append(([*on(core), worker, "--spool", incoming.parent, "--drain", "--jobs", "1", *options], {}))
    os.sync()
    cpu, wall = work(commands)
    published = {}
    for number in range(workers):
        output = place / str(number) / "output"
        published |= {str(file.relative_to(output)): hashlib.md5(file.read_bytes()).hexdigest()
                      for file in output.rglob("*") if file.is_file() and not str(file.relative_to(output)).startswith(".")}
    shutil.rmtree(place)
    return Run(cpu, wall, published)


def kind(method, target):
    """Returns the kind of object that a request was for."""
    path = target.partition("?")[0].removeprefix(f"/{BUCKET}").removeprefix("/run").removeprefix("/")
    what = ("trial of conditions" if path.startswith("incoming/.") else "batch" if path.startswith("incoming/") else "receipt" if path.startswith("receipts/") else
            "HLS" if "/hls/" in path else "mark" if path.startswith("behind/") else
            "index page" if path.startswith("index/") and not path.endswith("/head.json") else
            "pack" if "/pack-" in path else "video" if path.endswith(".mp4") else "manifest" if "/segment-" in path else path.rsplit("/", 1)[-1] or "list")
    return f"{method} {what}"


def remote(worker, batches, store, workers, scratch, jobs=1, options=(), earlier=()):
    place = Path(tempfile.mkdtemp(dir=scratch))
    own, servers_core = cores(workers)
    with Servers(store, place, servers_core) as servers:
        environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": servers.endpoint, "TMPDIR": str(place)}
        command = [worker, "--queue", f"unix://{servers.socket}", "--store", f"s3://{BUCKET}/run", "--drain", "--jobs", str(jobs),
                   *options]
        if earlier:
            servers.add(earlier)
            subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        servers.add(batches)
        os.sync()
        logged = len(servers.log.read_text().splitlines())
        calls, usec, cpu, count = servers.redis_state()
        store_cpu = servers.store_cpu()
        run = Run(*work([([*on(core), *command], environment) for core in own]))
        run.storeCPU = servers.store_cpu() - store_cpu
        then = servers.redis_state()
        run.commands, run.redisCPU, run.redisBytes = then[0] - calls, then[2] - cpu, then[3] - count
        # The time of a script includes that of its commands.
        run.redisUs = (then[1] - usec)["evalsha"]
        lines = [line.split(" ", 4) for line in servers.log.read_text().splitlines()[logged:]]
        run.requests = collections.Counter(kind(line[0], line[4]) for line in lines)
        run.refusals = sum(line[1] in ("404", "412") for line in lines)
        run.storeBytes = sum(int(line[2]) + int(line[3]) for line in lines)
        run.published = {key.removeprefix("output/"): tag for key, tag in servers.keys("output/").items()}
        left = servers.keys("incoming/"), servers.keys("quarantine/")
        receipts = 0 if "packed" in options else len(batches) + len(earlier)
        if any(left) or len(servers.keys("receipts/")) != receipts:
            sys.exit(f"not all batches are published: {left}")
    shutil.rmtree(place)
    return run


def growing(worker, start, scratch):
    """Returns CPU ms and kB for a batch of one tiny segment, added to sessions of each of LENGTHS segments."""
    picture = min((ROOT / "fixtures" / "gap").glob("*.jpg"), key=lambda file: file.stat().st_size)
    result = []
    for count in LENGTHS:
        place = scratch / f"length-{count}"
        batches = []
        for first, size in [(first, 360) for first in range(0, count, 360)] + [(count + number, 1) for number in range(NEW)]:
            batches.append(place / f"walk@{first:06}.tar")
            batches[-1].parent.mkdir(parents=True, exist_ok=True)
            with tarfile.open(batches[-1], "w", format=tarfile.USTAR_FORMAT) as tar:
                for number in range(first, first + size):
                    tar.add(picture, f"{START + number * 6_000}.jpg")
        run = remote(worker, batches[-NEW:], PLAIN, 1, scratch, earlier=batches[:-NEW])
        result.append((count, (run.cpu - start) * 1e3 / NEW, run.storeBytes / NEW / 1e3))
        shutil.rmtree(place)
    return result


def idle(worker, scratch):
    """Measures an idle worker for IDLE_S seconds: CPU ms a second, from a queue also commands a second."""
    def spend(command, environment):
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, env={**os.environ, **environment})
        time.sleep(2)
        used = lambda: sum(map(int, Path(f"/proc/{child.pid}/schedstat").read_text().split()[:1])) + sum(
            int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{child.pid}/task").iterdir()
            if task.name != str(child.pid))
        before = used()
        between = counted()
        time.sleep(IDLE_S)
        spent = (used() - before) / 1e6 / IDLE_S, (counted() - between) / IDLE_S
        child.terminate()
        child.wait()
        return spent
    counted = lambda: 0
    from_spool = spend([worker, "--spool", scratch / "idle"], {})[0]
    with Servers(PLAIN, scratch, None) as servers:
        counted = lambda: servers.redis_state()[0]["evalsha"]
        return from_spool, *spend(
            [worker, "--queue", f"unix://{servers.socket}", "--store", f"s3://{BUCKET}/run"],
            {**ENVIRONMENT, "AWS_ENDPOINT_URL": servers.endpoint, "TMPDIR": str(scratch)})


def session(batch):
    return batch.name.partition("@")[0]


def make_batches(folder, size, copies, target):
    """Makes tars of `size` frames, and interleaves the sessions."""
    target.mkdir()
    batches = []
    for path in sorted(folder):
        frames = sorted((path / "jpg").glob("*.jpg"), key=lambda frame: int(frame.stem))
        for copy in "abcdefgh"[:copies]:
            for number in range(max(1, min(MOST, len(frames) // size))):
                file = target / f"{path.name}-{copy}@{number:03}.tar"
                with tarfile.open(file, "w", format=tarfile.USTAR_FORMAT, dereference=True) as tar:
                    for frame in frames[number * size:(number + 1) * size]:
                        tar.add(frame, frame.name)
                batches.append((number, copy, file))
    return [file for _, _, file in sorted(batches)]


def make_tiny(segments, target):
    """Makes 100 batches of ten sessions in turn, with one small picture a segment, to isolate the cost of a batch."""
    target.mkdir()
    picture = min((ROOT / "fixtures" / "gap").glob("*.jpg"), key=lambda file: file.stat().st_size)
    for number in range(100):
        with tarfile.open(target / f"{number // 10:02}-s{number % 10}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for segment in range(segments):
                tar.add(picture, f"{START + (number // 10 * segments + segment) * 5_000}.jpg")
    batches = []
    for file in sorted(target.iterdir()):
        part, name = file.stem.split("-")
        batches.append(file.rename(target / f"{name}@{part}.tar"))
    return batches


def corpus(argument, scratch):
    folder = Path(argument) if argument else ROOT.parent / "shared" / "corpus"
    if folder.is_dir():
        return [path.parent for path in folder.glob("*/jpg")]
    for name in ("jittered", "irregular-3fps", "odd-size"):
        (scratch / "corpus" / name).mkdir(parents=True)
        (scratch / "corpus" / name / "jpg").symlink_to(ROOT / "fixtures" / name)
    return list((scratch / "corpus").iterdir())


# The runs that are compared with the same number of spools: store, workers, jobs of each.
WAYS = [(MOTO, 1, 1), (PLAIN, 1, 1), (SLOW, 1, LATE_JOBS), (MOTO, 2, 1), (PLAIN, 2, 1), (SLOW, 2, LATE_JOBS)]
ONE, TWO, ALONE, PAIR = ("spools", 1, 1), ("spools", 2, 1), (PLAIN, 1, 1), (PLAIN, 2, 1)


class Measured:
    """All runs with batches of one size; CPU and time exclude the start."""

    def __init__(self, batches):
        self.batches = batches
        self.bytes = statistics.mean(batch.stat().st_size for batch in batches)
        self.runs = collections.defaultdict(list)
        self.starts = {}

    def measure(self, worker, scratch, turn, ways=(ONE, ALONE, TWO, PAIR, *[way for way in WAYS if way[0] != PLAIN])):
        ways = [way for way in ways if turn < FEW.get(way[0], ROUNDS + TINY_ROUNDS)]
        for way in ways if turn % 2 == 0 else ways[::-1]:
            store, workers, jobs = way
            print(f"  {store}, {workers}, --jobs {jobs} …", file=sys.stderr)
            one = lambda batches: (spools(worker, batches, workers, scratch) if store == "spools"
                                   else remote(worker, batches, store, workers, scratch, jobs))
            if way not in self.starts:
                empty = [one([]) for _ in range(3)]
                self.starts[way] = min(run.cpu for run in empty), min(run.wall for run in empty), empty[0]
            run = one(self.batches)
            cpu, wall, start = self.starts[way]
            run.cpu, run.wall = run.cpu - cpu, run.wall - wall
            if run.commands is not None:
                run.forget(start)
            first = next(iter(self.runs.values()), [run])[0]
            if run.published != first.published:
                differing = [name for name in {*run.published, *first.published}
                             if run.published.get(name) != first.published.get(name)]
                sys.exit(f"{store}, {workers} workers: what is published differs: {sorted(differing)[:5]}")
            self.runs[way].append(run)

    def cpu(self, way):
        """Returns the minimum of milliseconds a batch."""
        return min(run.cpu for run in self.runs[way]) * 1e3 / len(self.batches)

    def rate(self, way):
        """Returns the maximum of batches a second."""
        return len(self.batches) / min(run.wall for run in self.runs[way])

    def ratio(self, way, value):
        """Returns the ratio to the same number of spools: of the minimums, and in brackets of single rounds."""
        spools = self.runs["spools", way[1], 1]
        each = sorted(value(ours) / value(spool) for ours, spool in zip(self.runs[way], spools))
        best = min if value(self.runs[way][0]) == self.runs[way][0].cpu else max
        return f"{best(map(value, self.runs[way])) / best(map(value, spools)):.3f} ({each[0]:.2f} to {each[-1]:.2f})"

    def mean(self, way, value):
        return statistics.mean(value(run) for run in self.runs[way]) / len(self.batches)

    @property
    def segments(self):
        return sum(name.endswith(".mp4") for name in self.runs[ONE][0].published) / len(self.batches)


def rows(table):
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in table)


def plain(value):
    return f"{value:.2f}".rstrip("0").rstrip(".") if value else ""


def name(way):
    store, workers, jobs = way
    return f"{store}, {workers} worker{'s' * (workers > 1)}, `--jobs {jobs}`"


def page(measured, tiny, layouts, crowd, lengths, resting, sessions):
    sizes = list(measured)
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    redis = subprocess.run(["redis-server", "--version"], capture_output=True, text=True).stdout.split()[2].removeprefix("v=")
    single, double = ([way for way in (first, *WAYS) if way[1] == workers] for first, workers in ((ONE, 1), (TWO, 2)))
    asked = WAYS[0]
    head = lambda *names: " | ".join(names) + " |\n|---|" + "--:|" * len(names)
    frames = [f"{size} frames" for size in sizes]
    cells = lambda value: [value(size, measured[size]) for size in sizes]
    compared = lambda number, value: rows(
        (name(way), *sum(([number(measured[size], way), "" if way[0] == "spools" else measured[size].ratio(way, value)]
                          for size in sizes), [])) for way in single + double)
    commands = sorted({name for one in measured.values() for name in one.runs[asked][0].commands} - {"evalsha", "script|load"})
    a_batch = lambda size, run, value: plain(value(run) / len(measured[size].batches))
    of_crowd = lambda value: value(crowd[0]) / len(measured[sizes[0]].batches)
    return f"""# The cost of a queue and a store

`make remote`, {date.today()}, {len(CORES)} × {model.group(1) if model else platform.machine()} (a virtual machine whose cores others use, too), Linux {platform.release().split("-")[0]},
Redis {redis} with `appendonly yes`. Batches are tars of frames of {", ".join(sessions)}, each under several names, which take turns, with at
most {MOST} batches: {"; ".join(f"{len(one.batches)} batches of {size} frames, {one.segments:.1f} segments each" for size, one in measured.items())}. 
{ROUNDS} rounds in turn, of {MOTO} and the late one only {max(FEW.values())}; the least of each, and in brackets the ratios of single rounds,
which show what the others on the machine do to them. The start of a worker is not counted. What was published was the
same everywhere, byte for byte.

{verdict(measured, tiny)}

## CPU of the workers

User and system, with the processes that decode, of all workers together; ms a batch, and as a ratio to as many spools.

| | {head(*sum(([f"{name}: ms", "× spools"] for name in frames), []))}
{compared(lambda one, way: f"{one.cpu(way):.1f}", lambda run: run.cpu)}

The cost beside the pictures, by batches of small pictures that hardly cost anything, {TINY_ROUNDS} rounds:

| segments of a batch | {head("spool, ms", "queue and store, ms", "more, ms", "requests")}
{rows((segments, f"{one.cpu(ONE):.2f}", f"{one.cpu(ALONE):.2f}", f"{one.cpu(ALONE) - one.cpu(ONE):+.2f}", f"{requests(one):.1f}") for segments, one in tiny.items())}

A spool syncs what it writes, a store is sent it: the one is saved, the other spent. Not in there are the bytes of real captures, which
come over a socket and go to scratch first. Connections were plain HTTP; TLS comes on top.

## Time on the clock

Batches a second, the most of all rounds. One worker had a core to itself and the servers the other one. **Two workers share both cores with
the servers**, so that their rows say what this machine does, and not what two cores would do with servers elsewhere. The tests' store
is Python, checks each signature and answers one request at a time. The plain one has none of that; the late one is the plain one
that answers GET and HEAD {GET_MS} ms and all else {PUT_MS} ms later, as [capacity](../docs/capacity.md) assumes; at the end of its runs the last batches wait
alone, which is in the number.

| | {head(*sum(([f"{name}: a second", "× spools"] for name in frames), []))}
{compared(lambda one, way: f"{one.rate(way):.2f}", lambda run: 1 / run.wall)}

From one worker to two:

| | {head(*frames)}
{rows((f"{store}, `--jobs {jobs}`", *cells(lambda size, one: f"{one.rate((store, 2, jobs)) / one.rate((store, 1, jobs)):.2f} × as fast, {one.cpu((store, 2, jobs)) / one.cpu((store, 1, jobs)):.2f} × the CPU a batch")) for store, jobs in (("spools", 1), (MOTO, 1), (PLAIN, 1), (SLOW, LATE_JOBS)))}

## Requests

Requests to the store a batch, of {" and ".join(f"{one.segments:.2f}" for one in measured.values())} segments in the mean. The first batch of a session finds nothing there, which is what is
answered 404, and has no manifest to read.

{requests_table(measured, layouts)}

Of Redis, a batch; the producer's `XADD` is not in there. Beside taking and settling, a worker looks every five seconds for what dead
ones held, counts what waits whenever it has taken all that it knew of, and renews what it holds each third of a lease.

| command | {head(*frames)}
{rows((said, *cells(lambda size, one: a_batch(size, one.runs[asked][0], lambda run: run.commands[name]))) for said, name in [("EVALSHA, sent by workers", "evalsha"), *[(f"{name.upper().replace('|', ' ')}, in scripts", name) for name in commands]])}

And what the servers take, a batch:

| | {head(*frames)}
{rows([("Redis, its scripts, ms of CPU", *cells(lambda size, one: f"{least(one, ALONE, lambda run: run.redisUs) / 1e3:.2f}")),
       ("Redis, all, ms of CPU", *cells(lambda size, one: f"{least(one, ALONE, lambda run: run.redisCPU) * 1e3:.2f}")),
       ("the tests' store, ms of CPU", *cells(lambda size, one: f"{least(one, asked, lambda run: run.storeCPU) * 1e3:.0f}")),
       ("the plain store, ms of CPU", *cells(lambda size, one: f"{least(one, ALONE, lambda run: run.storeCPU) * 1e3:.1f}")),
       ("to and from Redis, kB", *cells(lambda size, one: f"{least(one, asked, lambda run: run.redisBytes) / 1e3:.2f}")),
       ("to and from the store, kB", *cells(lambda size, one: f"{least(one, asked, lambda run: run.storeBytes) / 1e3:.0f}")),
       ("of that the batch itself, kB", *cells(lambda size, one: f"{one.bytes / 1e3:.0f}"))])}

## Where it costs more

Of a session's index a batch reads and writes the last segments only; {NEW} batches of one tiny segment behind so many cost, a batch, the views at the
end included:

| segments | {head("CPU of the worker, ms", "to and from the store, kB")}
{rows((number(count), f"{cpu:.1f}", number(kB)) for count, cpu, kB in lengths)}

When batches of one session are worked on at once, as after an outage, who loses writes again. All batches of {sizes[0]} frames, session after
session, `--jobs {crowd[1]}`: {of_crowd(lambda run: run.requests.total()):.1f} requests a batch, {of_crowd(lambda run: run.refusals):.1f} of them answered 404 or 412; {of_crowd(lambda run: run.storeBytes) / 1e3:.0f} kB and {of_crowd(lambda run: run.cpu) * 1e3:.0f} ms of CPU a batch.

A worker that finds nothing takes {resting[0]:.1f} ms of CPU a second beside a spool, and beside a queue {resting[1]:.1f}, with {resting[2]:.1f} commands.
Its start takes {measured[sizes[0]].starts[ONE][0] * 1e3:.0f} ms of CPU with a spool, {measured[sizes[0]].starts[ALONE][0] * 1e3:.0f} ms with a queue and a store.
"""


def requests_table(measured, layouts):
    """Returns the requests of a batch, by kind and by the options of the worker."""
    runs = [(size, options, run) for options, by_size in layouts.items() for size, run in by_size.items()]
    kinds = sorted({kind for _, _, run in runs for kind in run.requests}, key=lambda kind: kind.split()[::-1])
    row = lambda title, value: (title, *(plain(value(run) / len(measured[size].batches)) for size, _, run in runs))
    titles = " | ".join(f"{size} frames{', ' * bool(options)}{options and f'`{options}`'}" for size, options, _ in runs)
    return f"""| request | {titles} |
|---|{"--:|" * len(runs)}
{rows([*(row(kind, lambda run: run.requests[kind]) for kind in kinds), row("all", lambda run: run.requests.total()),
       row("of these answered 404 or 412", lambda run: run.refusals)])}"""


def number(value):
    return f"{value:,.0f}".replace(",", " ")


def requests(one):
    return one.mean(ALONE, lambda run: run.requests.total())


def least(one, way, value):
    """Returns the minimum of the rounds, per batch."""
    return min(map(value, one.runs[way])) / len(one.batches)


def verdict(measured, tiny):
    """Returns whether N workers on N cores are within 5 % of N spools."""
    few, many = tiny
    more = {count: one.cpu(ALONE) - one.cpu(ONE) for count, one in tiny.items()}
    judged = lambda share: f"{share:.3f} times the spool's, **{'holds' if share <= 1.05 else 'does not hold'}**"
    said = []
    for size, one in measured.items():
        asked = one.runs[ALONE][0].requests
        fetched = sum(count for kind, count in asked.items() if kind.startswith(("GET", "HEAD"))) / len(one.batches)
        wait = fetched * GET_MS + (requests(one) - fetched) * PUT_MS
        said.append(
            f"- Batches of {size} frames, {one.segments:.1f} segments. CPU with one worker {judged(one.cpu(ALONE) / one.cpu(ONE))}; with "
            f"two {judged(one.cpu(PAIR) / one.cpu(TWO))}. {requests(one):.1f} requests and "
            f"{one.mean(ALONE, lambda run: run.commands['evalsha']):.1f} calls of Redis. Each answer is waited for: {wait:.0f} ms a batch "
            f"where they take {GET_MS} and {PUT_MS} ms, beside {one.cpu(ONE):.0f} ms of work. So with `--jobs 1` the promise **does not "
            f"hold** on the clock; {1 + wait / one.cpu(ONE):.0f} jobs a core hide the wait.")
    spread = [ours.cpu / spool.cpu for one in measured.values() for way in (ALONE, PAIR)
              for ours, spool in zip(one.runs[way], one.runs["spools", way[1], 1])]
    taken = max(min(run.wall for run in one.runs[ONE]) / min(run.cpu for run in one.runs[ONE]) for one in measured.values()) - 1
    return f"""The promise: **N workers on N cores within 5 % of N spools.**

{chr(10).join(said)}
- By batches with next to no pictures, where 5 % of a real batch would be most of it, a queue and a store take
  {more[few]:+.2f} ms of CPU for a batch of {few} segment, and {more[many]:+.2f} ms for one of {many}.
- How sure: the ratios of single rounds lie between {min(spread):.2f} and {max(spread):.2f}, and a spool's worker, alone on a core, took {taken:.0%} longer
  than its CPU, because others had the cores, too. {"That is more than the 5 % in question: CPU is right to within that spread, and time on the clock judges nothing here." if taken > 0.05 else ""}"""


def asked_for(worker, measured, scratch):
    """Returns runs by the options of the worker, and by the size of batches."""
    return {options: {size: remote(worker, one.batches, PLAIN, 1, scratch, options=options.split())
                      for size, one in measured.items()}
            for options in ("", "--hls", "--layout packed", "--layout packed --hls")}


def main():
    worker = subprocess.run(["swift", "build", "-c", "release", "--show-bin-path"], stdout=subprocess.PIPE, text=True,
                            check=True, cwd=ROOT).stdout.strip() + "/encoder-worker"
    scratch = Path(tempfile.mkdtemp(prefix="remote-"))
    try:
        words = [word for word in sys.argv[1:] if not word.startswith("--")]
        folder = corpus(words[0] if words else None, scratch)
        measured = {size: Measured(make_batches(folder, size, copies, scratch / f"batches-{size}"))
                    for size, copies in SIZES.items()}
        if "--requests" in sys.argv:
            return print(requests_table(measured, asked_for(worker, measured, scratch)))
        for turn in range(ROUNDS):
            for size, one in measured.items():
                print(f"round {turn + 1}, {size} frames", file=sys.stderr)
                one.measure(worker, scratch, turn)
        tiny = {segments: Measured(make_tiny(segments, scratch / f"tiny-{segments}")) for segments in (1, 12)}
        for turn in range(TINY_ROUNDS):
            for one in tiny.values():
                one.measure(worker, scratch, turn, (ONE, ALONE))
        layouts = asked_for(worker, measured, scratch)
        crowd = remote(worker, sorted(measured[10].batches), PLAIN, 1, scratch, jobs=4), 4
        for run in (*(run for by_size in layouts.values() for run in by_size.values()), crowd[0]):
            run.forget(measured[10].starts[ALONE][2])
        lengths = growing(worker, measured[10].starts[PLAIN, 1, 1][0], scratch)
        resting = idle(worker, scratch)
    finally:
        shutil.rmtree(scratch)
    text = page(measured, tiny, layouts, crowd, lengths, resting, sorted(path.name for path in folder))
    print(text)
    if not words:
        (ROOT / "Benchmarks" / "REMOTE.md").write_text(text)


if __name__ == "__main__":
    main()
