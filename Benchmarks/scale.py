"""Measures costs that one session does not show: many batches, long sessions, several workers, memory. For bench.py.

All input is made from frames of the corpus or from tiny pictures, to isolate the cost of a batch from that of its
pictures. CPU is user + system time of the worker and of its decoder processes.
"""

import os
import resource
import shutil
import signal
import subprocess
import time

START = 1_767_859_512_340
FEW, MANY = 100, 100_000
DAY = 17_280


def tiny(folder, size="64x64"):
    """Makes four small pictures."""
    folder.mkdir()
    subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", f"testsrc=size={size}:rate=1", "-frames:v", "4", "-q:v",
                    "5", folder / "%d.jpg"], check=True)
    return sorted(folder.glob("*.jpg"))


def batch(folder, name, pictures, startMs, intervalMs=1_000):
    """Makes a plain batch of links to these pictures."""
    path = folder / name
    path.mkdir()
    for number, picture in enumerate(pictures):
        os.link(picture, path / f"{startMs + number * intervalMs}.jpg")
    return path


def captured(spool, name, frames):
    """Makes a waiting batch of copies of these frames, under their own names."""
    path = spool / "incoming" / name
    path.mkdir()
    for frame in frames:
        shutil.copy(frame, path)


def cpu(command, until=None):
    """Runs a command to its end, or stops it once `until` holds. Returns CPU seconds with its decoder processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while until and child.poll() is None and not until():
        time.sleep(0.2)
    if until:
        child.send_signal(signal.SIGTERM)
    child.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def new_spool(path):
    for state in ("incoming", "tmp"):
        (path / state).mkdir(parents=True)
    return path


def waiting(worker, pictures, scratch):
    """Measures CPU ms a batch by queue depth, with batches of one picture, each of its own session."""
    idle = new_spool(scratch / "idle")
    start = min(cpu([worker, "--spool", idle, "--drain"]) for _ in range(5))
    result = []
    for count in (FEW, MANY):
        costs = []
        for turn in range(5 if count == FEW else 1):
            spool = new_spool(scratch / f"waiting-{count}-{turn}")
            for number in range(count):
                batch(spool / "incoming", f"s{number:06}", [pictures[number % 4]], START)
            done = lambda: count - len(os.listdir(spool / "incoming"))
            spent = cpu([worker, "--spool", spool, "--jobs", "1"], lambda: done() >= min(count, 5_000))
            costs.append((spent - start) * 1_000 / done())
            shutil.rmtree(spool)
        result.append(min(costs))
    return result


def growing(worker, pictures, scratch):
    """Measures CPU ms for a batch of one segment, added to a new session and to one of a day, by a worker each."""
    day = scratch / "day"
    parts = [batch(scratch, f"walk@{part:03}", (pictures * 90)[:360], START + part * 360 * 6_000, 6_000)
             for part in range(DAY // 360)]
    subprocess.run([worker, "encode", *parts, "--output", day], stdout=subprocess.DEVNULL, check=True)
    result = []
    for output, first in ((scratch / "new", 0), (day, START + DAY * 6_000)):
        spool = new_spool(scratch / f"spool-{output.name}")
        for number in range(400):
            batch(spool / "incoming", f"walk@{number:04}", pictures[:1], (first or START) + number * 1_000)
        result.append(cpu([worker, "--spool", spool, "--output", output, "--drain", "--jobs", "1"]) * 1_000 / 400)
        shutil.rmtree(spool)
    return result


def throughput(worker, frames, scratch, rounds=3):
    """Returns the seconds for a spool of batches of ten frames: by one worker, and by two side by side."""
    times = {1: [], 2: []}
    for turn in range(rounds):
        for workers in (1, 2):
            spool = new_spool(scratch / f"throughput-{turn}-{workers}")
            # Each frame is used twice, to reduce the share of the start.
            for number in range(0, len(frames) // 10 * 10, 10):
                for copy in ("a", "b"):
                    captured(spool, f"s{number:04}{copy}", frames[number:number + 10])
            os.sync()
            start = time.monotonic()
            running = [subprocess.Popen([worker, "--spool", spool, "--drain", "--jobs", "1"], stderr=subprocess.DEVNULL)
                       for _ in range(workers)]
            for child in running:
                child.wait()
            times[workers].append(time.monotonic() - start)
            shutil.rmtree(spool)
    return min(times[1]), min(times[2])


def overhead(worker, frames, scratch, mode, rounds=3):
    """Measures CPU ms for a batch of two frames, one segment, without decoding and encoding, but with the start."""
    spent = []
    for turn in range(rounds):
        spool = new_spool(scratch / f"overhead-{mode}-{turn}")
        count = 0
        for copy in range(4):
            for first in range(0, len(frames) - 1, 2):
                captured(spool, f"s{copy}@{first:04}", frames[first:first + 2])
                count += 1
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        said = subprocess.run([worker, "--spool", spool, "--drain", "--jobs", "1", "--profile", "--sandbox", mode],
                              stderr=subprocess.PIPE, text=True, check=True).stderr.splitlines()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        whole = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1_000
        stages = [line.split() for line in said if line.startswith(("decode ", "encode "))]
        spent.append((whole - sum(float(stage[3]) for stage in stages)) / count)
        shutil.rmtree(spool)
    return min(spent)


def memory(worker, frames, size, scratch):
    """Returns the peak RSS, in MB, of a worker with two jobs and of its decoders, for pictures of this size."""
    folder = scratch / f"memory-{size or 'as-it-is'}"
    folder.mkdir()
    batches = []
    for number, first in enumerate(range(0, min(len(frames), 60), 15)):
        path = folder / f"s{number}"
        path.mkdir()
        for frame in frames[first:first + 15]:
            if size:
                subprocess.run(["ffmpeg", "-v", "error", "-i", frame, "-vf", f"scale={size}", "-q:v", "3",
                                path / frame.name], check=True)
            else:
                shutil.copy(frame, path)
        batches.append(path)
    log = folder / "peak"
    # Covers the worker process alone; its decoder processes are children, and counted separately.
    script = ("import os, sys, resource\nchild = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)\n"
              "_, status, used = os.wait4(child, 0)\nopen(sys.argv[1], 'w').write(str(used.ru_maxrss))\nsys.exit(status != 0)")
    subprocess.run(["python3", "-c", script, log, worker, "encode", *batches, "--output", folder / "out", "--jobs", "2"],
                   stdout=subprocess.DEVNULL, check=True)
    return int(log.read_text()) / 1024


def profile(worker, frames, scratch):
    """Returns the profile's table for a spool of batches of ten frames."""
    spool = new_spool(scratch / "profile")
    for number in range(0, len(frames) // 10 * 10, 10):
        captured(spool, f"s@{number:04}", frames[number:number + 10])
    command = [worker, "--spool", spool, "--drain", "--jobs", "1", "--profile"]
    said = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=True).stderr.splitlines()
    first = next(number for number, line in enumerate(said) if line.startswith("stage"))
    return "\n".join(said[first:])


def report(worker, paths, scratch):
    """Returns a table, and the profile of one session."""
    scratch.mkdir()
    pictures = tiny(scratch / "tiny")
    frames = sorted((paths[0] / "jpg").glob("*.jpg"))
    few, many = waiting(worker, pictures, scratch)
    new, day = growing(worker, pictures, scratch)
    one, two = throughput(worker, [frame for path in paths for frame in sorted((path / "jpg").glob("*.jpg"))], scratch)
    rows = [
        (f"CPU ms a batch (one tiny picture), {FEW} waiting", few, ""),
        (f"the same, {MANY} waiting", many, f"{many / few:.2f} ×"),
        ("CPU ms a batch (one tiny segment), a new session", new, ""),
        (f"the same, a session of {DAY} segments", day, f"{day / new:.2f} ×"),
        ("seconds for the spool of all sessions, twice; one worker", one, ""),
        ("the same, two workers", two, f"{one / two:.2f} × as fast"),
        ("CPU ms a batch of two frames beside decoding and encoding, fsync in there", overhead(worker, frames, scratch, "require"),
         ""),
        ("the same, `--sandbox off`", overhead(worker, frames, scratch, "off"), ""),
        (f"peak RSS, MB, `--jobs 2`, frames of {paths[0].name}", memory(worker, frames, None, scratch), ""),
        ("the same, scaled to 1170×2532", memory(worker, frames, "1170:2532", scratch), ""),
    ]
    lines = ["| | | |", "|---|--:|--:|"] + [f"| {what} | {value:.2f} | {ratio} |" for what, value, ratio in rows]
    return "\n".join(lines), profile(worker, frames, scratch)
