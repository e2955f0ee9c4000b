#!/usr/bin/python3
"""Lets a worker drain a spool of mutated batches, and checks the result.

    mutate.py WORKER [--count N] [--seed S] [--first I] [--piece N] [--keep DIR]

Batch I of seed S always has the same bytes; `--first I --count 1` makes it alone. The checks are:

- The exit status is 0 or 65.
- No worker dies with a batch.
- Each batch is published, or in quarantine with a reason and unchanged bytes.
- `verify` finds no fault in any session.
- No file outside of the spool changes.
- The worker uses at most 512 MB of memory.

A failed check is reported with its seed and index, and the spool is kept (in DIR, or in its temporary directory).

BAD_IMAGES names a directory of images that crashed other decoders. With it, batches include these images, and differ
from those without.
"""

import argparse
import gzip
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
from mutations import mutated_directory, mutated_file, mutated, packed

ROOT = Path(__file__).resolve().parents[2]
SEEDS = ["formats/*/*", "formats/native", "formats/plain@1", "formats/sentry-cocoa", "single-frame", "odd-size", "masks",
         "rotation", "corrupt-frames", "colour-bars", "wide-colour"]
MOST_KIB = 512 * 1024
MOST_FILES = 12



def fixtures():
    """Returns each batch as a name and its files; a batch that is a single file has the name ''."""
    found = []
    for pattern in SEEDS:
        for path in sorted((ROOT / "fixtures").glob(pattern)):
            if path.is_dir():
                files = sorted(file for file in path.rglob("*") if file.is_file())
                # A sample of the pictures is enough.
                kept = [file for file in files if file.suffix not in (".jpg", ".png")] + [
                    file for file in files if file.suffix in (".jpg", ".png")][:MOST_FILES]
                files = {str(file.relative_to(path)): file.read_bytes() for file in sorted(kept)}
                found.append((path.name, files))
            elif path.suffix in (".gz", ".zst", ".frames"):
                found.append((path.name, {"": path.read_bytes()}))
    return found


def bad_images():
    """Returns images from the directory BAD_IMAGES; none without it, so that a seed gives the same batches on every
    machine."""
    if not (folder := os.environ.get("BAD_IMAGES")):
        return []
    if not os.path.isdir(folder):
        sys.exit(f"mutate: BAD_IMAGES: {folder} is not a directory")
    return [path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file() and path.stat().st_size < 1 << 18]


def unique(text, index):
    """Returns the same name with a unique session."""
    for old, new in (("0123456789abcdef0123456789abcdef", f"{index:032x}"), ("7A1D2C3B4A59", f"{index:012X}"),
                     ("7281923112", f"{7281923112 + index}"), ("plain@", f"plain-{index}@")):
        text = text.replace(old, new)
    return text


class Maker:
    def __init__(self, seed):
        self.seed, self.batches, self.images = seed, fixtures(), bad_images()
        self.others = [data for _, files in self.batches for data in files.values()] + self.images

    def batch(self, index):
        """-> its name, and its files, or the bytes of the single file."""
        rng = random.Random(f"{self.seed}:{index}")
        name, files = rng.choice(self.batches)
        fresh = unique(name, index)
        name = fresh if fresh != name else f"m{index}-{name}"
        if "" in files:
            return name, mutated_file(rng, files[""], self.others)
        files = {unique(path, index): self.renamed(path, data, index) for path, data in files.items()}
        choice = rng.random()
        if choice < 0.65:
            return name, mutated_directory(rng, files, self.images, self.others)
        files = files if choice < 0.75 else mutated_directory(rng, files, self.images, self.others)
        data = packed(rng, files)
        if rng.random() < 0.3:
            data = data[:rng.randrange(0, len(data), 512)] + packed(rng, rng.choice(self.batches)[1])
        if rng.random() < 0.6:
            data = mutated(rng, data, self.others)
        return name + ".tar", rng.choice([data, gzip.compress(data, 1, mtime=0)])

    @staticmethod
    def renamed(path, data, index):
        if path.endswith("batch.json"):
            description = json.loads(data)
            description["session"] = f"m{index}"
            return json.dumps(description).encode()
        if "replay." in path or ".ongoing" in path:
            return unique(data.decode(), index).encode()
        return data


def write(path, content):
    if isinstance(content, bytes):
        path.write_bytes(content)
        return
    path.mkdir()
    for name, data in content.items():
        file = path / name
        # Another file may have the path of a needed directory.
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue


def digest(path):
    """Returns a digest of the whole tree at a path: names, kinds, bytes."""
    result = hashlib.sha256()
    inside = sorted(path.rglob("*")) if path.is_dir() else []
    for file in [path, *inside]:
        result.update(os.fsencode(file.relative_to(path)) + b"\0")
        if file.is_symlink():
            result.update(os.fsencode(os.readlink(file)))
        elif file.is_file():
            result.update(hashlib.sha256(file.read_bytes()).digest())
    return result.hexdigest()


def run(command, seconds):
    """-> exit status (negative: a signal), peak KiB, standard error; the status is None after a timeout."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        hung = threading.Event()
        timer = threading.Timer(seconds, lambda: (hung.set(), process.send_signal(signal.SIGKILL)))
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        return None if hung.is_set() else process.returncode, usage.ru_maxrss, errors.read().decode(errors="replace")


def reason_is_whole(path):
    try:
        reason = json.loads(path.read_bytes())
        return all(reason[key] for key in ("batch", "operation", "file", "cause", "advice"))
    except (OSError, ValueError, KeyError):
        return False


def piece(worker, maker, first, count, work):
    """-> the failed checks, and statistics for the report."""
    spool, outside = work / "spool", work / "outside"
    outside.mkdir()
    (outside / "victim").write_bytes(b"mine")
    (spool / "incoming").mkdir(parents=True)
    given = {}
    for index in range(first, first + count):
        name, content = maker.batch(index)
        write(spool / "incoming" / name, content)
        given[name] = index, digest(spool / "incoming" / name)
    before = digest(outside)
    began = time.monotonic()
    status, peak, errors = run(
        [worker, "--spool", str(spool), "--drain", "--jobs", "2", "--keep-batches"], 600 + 6 * count)
    seconds = time.monotonic() - began
    broken = []

    def complain(text, name=None):
        index = f" (index {given[name][0]})" if name in given else ""
        broken.append(f"{text}{': ' + repr(name) if name else ''}{index}")

    if status not in (0, 65):
        complain(f"the worker hung; {errors[-500:]}" if status is None else f"exit status {status}; {errors[-500:]}")
    if peak > MOST_KIB:
        complain(f"{peak // 1024} MiB of memory")
    if digest(outside) != before or sorted(os.listdir(work)) != ["outside", "spool"]:
        complain("something changed outside of the spool")
    for name in os.listdir(spool / "incoming") + [entry.name for entry in spool.glob("claimed/*/*/*")]:
        complain("neither published nor in quarantine", name)
    for folder in ("claimed", "trash", "output/.staging"):
        if any((spool / folder).iterdir()):
            complain(f"{folder} is not empty")
    done, quarantine = spool / "done", spool / "quarantine"
    bad = 0
    for name, (_, was) in given.items():
        places = [folder / name for folder in (done, quarantine) if os.path.lexists(folder / name)]
        if len(places) != 1:
            complain(f"in {len(places)} places", name)
        elif digest(places[0]) != was:
            complain("not as it came", name)
        elif places[0].parent == quarantine:
            bad += 1
            if not reason_is_whole(quarantine / (name + ".reason.json")):
                complain("without a reason", name)
            elif "workers died" in (quarantine / (name + ".reason.json")).read_text():
                complain("workers died with it", name)
    if (status == 65) != (bad > 0) and status in (0, 65):
        complain(f"exit status {status} with {bad} in quarantine")
    sessions = [str(path) for path in sorted((spool / "output").iterdir()) if not path.name.startswith(".")]
    if sessions:
        status, _, _ = run([worker, "verify", *sessions], 600 + 6 * count)
        if status != 0:
            complain(f"verify ends with {status}")
    return broken, f"{count - bad} published, {bad} in quarantine, {peak // 1024} MiB, {seconds:.0f} s"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("worker")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--piece", type=int, default=500)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    maker = Maker(options.seed)
    failed = False
    for first in range(options.first, options.first + options.count, options.piece):
        count = min(options.piece, options.first + options.count - first)
        work = Path(tempfile.mkdtemp(prefix="mutate-"))
        broken, numbers = piece(os.path.abspath(options.worker), maker, first, count, work)
        print(f"seed {options.seed}, {first}..<{first + count}: {numbers}", flush=True)
        for text in broken:
            print(f"  seed {options.seed}: {text}", flush=True)
        if broken:
            failed = True
            place = options.keep / f"{options.seed}-{first}" if options.keep else work
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                shutil.move(work, place)
            print(f"  kept in {place}", flush=True)
        else:
            shutil.rmtree(work)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
