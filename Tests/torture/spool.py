"""Fills and drains a spool for the torture tests, and compares its output with that of an undisturbed run."""
import ctypes
import hashlib
import json
import os
import shutil
import socket
import subprocess
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = os.path.join(ROOT, "fixtures")
# No process has this process number.
DEAD = f"{socket.gethostname()}~99999999~dead1"
START = 1_767_859_512_340
# Whether a short run uses the larger samples of `make test-all`.
IS_FULL = os.environ.get("TEST_EXTENT") == "full"
# Seconds after which a run or a worker without progress counts as hung. The program itself has no such limit.
HANG_S = 600
# Exit statuses of a run with good and bad batches: on a healthy machine, and on one with failures.
WELL, UNWELL = (0, 65), (65, 74, 75)


class Broken(Exception):
    """A failed check."""


def worker():
    """Returns the path of the program: ENCODER_WORKER, or the last build."""
    named = os.environ.get("ENCODER_WORKER")
    built = [os.path.join(ROOT, ".build", kind, "encoder-worker") for kind in ("release", "debug")]
    found = [named] if named else sorted(filter(os.path.exists, built), key=os.path.getmtime)
    if not found:
        raise SystemExit("torture: no encoder-worker; make build, or name one in ENCODER_WORKER")
    return found[-1]


def command(spool, *options):
    return [worker(), "--spool", spool, *options]


def drain(spool, *options):
    """Drains a spool. Returns the status and the output."""
    result = subprocess.run(command(spool, "--drain", *options), stdin=subprocess.DEVNULL, capture_output=True)
    return result.returncode, result.stderr.decode(errors="replace")


def make(spool):
    for state in ("incoming", "tmp"):
        os.makedirs(os.path.join(spool, state))
    return spool


def fill(spool):
    """Adds these batches:

    - two good batches;
    - one that is published already;
    - two of a session so long that the worker defers the updates of its views;
    - two bad ones: an invalid batch, and one that overlaps published segments.

    A dead worker held one of the good batches and had linked one of its videos."""
    make(spool)
    add(spool, "old@again", {START: "0000.jpg"})
    add(spool, "old@other", {START: "0001.jpg", START + 1_000: "0002.jpg"})
    # Ten captures so far apart that each becomes a segment.
    add(spool, "long@0", {START + number * 6_000: f"{number:04}.jpg" for number in range(10)})
    before = [os.path.join(spool, "incoming", name) for name in ("old@again", "long@0")]
    published = subprocess.run([worker(), "encode", *before, "--output", os.path.join(spool, "output")],
                               capture_output=True)
    if published.returncode != 0:
        raise SystemExit(f"torture: encode: {published.stderr.decode()}")
    shutil.rmtree(before[1])
    for number in (1, 2):
        add(spool, f"long@{number}", {START + number * 100_000: f"{number:04}.jpg"})
    held = os.path.join(spool, "claimed", DEAD)
    os.makedirs(os.path.join(held, "1.1.0"))
    write(os.path.join(held, "alive"), b"")
    write(os.path.join(held, "1.reason"), b"half a rea")
    shutil.copytree(os.path.join(FIXTURES, "gap"), os.path.join(held, "1.1.0", "gap"))
    os.makedirs(os.path.join(spool, "output", "gap"))
    write(os.path.join(spool, "output", "gap", f"segment-{START}.mp4"), b"half a vid")
    os.makedirs(os.path.join(spool, "output", ".staging", DEAD))
    write(os.path.join(spool, "output", ".staging", DEAD, "1"), b"half a vid")
    os.makedirs(os.path.join(spool, "trash", DEAD + "~2", "within"))
    write(os.path.join(spool, "trash", DEAD + "~2", "within", "frame.jpg"), b"published")
    with tarfile.open(os.path.join(spool, "tmp", "exact.tar"), "w") as tar:
        tar.add(os.path.join(FIXTURES, "exact-1fps"), ".")
    os.rename(os.path.join(spool, "tmp", "exact.tar"), os.path.join(spool, "incoming", "exact.tar"))
    write(os.path.join(spool, "incoming", "bad"), b"what is this")


def add_small(spool, number, sessions):
    """Adds a batch of its own ten seconds; every third batch becomes two segments."""
    name = f"s{number % sessions:02}@{number:05}"
    times = [START + number * 10_000 + frame * 1_000 for frame in range(7 if number % 3 == 0 else 2)]
    add(spool, name, {time: f"{frame:04}.jpg" for frame, time in enumerate(times)})


def add(spool, name, frames):
    """Adds a batch: captures and the pictures of a fixture."""
    draft = os.path.join(spool, "tmp", name)
    os.mkdir(draft)
    for time, picture in frames.items():
        shutil.copy(os.path.join(FIXTURES, "exact-1fps", picture), os.path.join(draft, f"{time}.jpg"))
    os.rename(draft, os.path.join(spool, "incoming", name))


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def names(*path):
    """Returns the names in a directory; none if there is no such directory."""
    try:
        return sorted(os.listdir(os.path.join(*path)))
    except FileNotFoundError:
        return []


def digests(output):
    """Returns every file of every session, and every directory, with its digest."""
    found = {}
    for path, directories, files in os.walk(output):
        if path == output and ".staging" in directories:
            directories.remove(".staging")
        for name in directories + files:
            file = os.path.join(path, name)
            with open(os.devnull if name in directories else file, "rb") as content:
                found[os.path.relpath(file, output)] = hashlib.sha256(content.read()).hexdigest()
    return found


def check_same(output, expected):
    found = digests(output)
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) != expected.get(name):
            what = "missing" if name not in found else "too many" if name not in expected else "other bytes"
            raise Broken(f"output/{name}: {what}")


def check_at_rest(spool):
    for place in ("incoming", "claimed", "trash", "tmp", "output/.staging"):
        if left := names(spool, place):
            raise Broken(f"left in {place}: {', '.join(left)}")


def prune(spool):
    result = subprocess.run([worker(), "prune", "--spool", spool], stdin=subprocess.DEVNULL, capture_output=True)
    if result.returncode != 0:
        raise Broken(f"prune: status {result.returncode}: {result.stderr.decode(errors='replace')}")


def check_quarantine(spool):
    """Checks that the quarantine holds the bad batches of fill() and no others."""
    found = names(spool, "quarantine")
    batches = [name for name in found if not name.endswith(".reason.json")]
    # If a dead worker's reason file had the name already, the batch's name gets a number.
    if [name.split(".")[0] for name in batches] != ["bad", "old@other"]:
        raise Broken(f"in quarantine: {', '.join(found) or 'nothing'}")
    with open(os.path.join(spool, "quarantine", batches[0]), "rb") as file:
        if file.read() != b"what is this" or len(names(spool, "quarantine", batches[1])) != 2:
            raise Broken("a quarantined batch has changed")
    causes = [reason(spool, name + ".reason.json")["cause"] for name in batches]
    if "no known format" not in causes[0] or "overlaps" not in causes[1]:
        raise Broken(f"in quarantine for other reasons: {causes}")
    if len(found) != 2 * len(batches):
        raise Broken(f"reasons without batches: {', '.join(found)}")


def reason(spool, name):
    try:
        with open(os.path.join(spool, "quarantine", name), "rb") as file:
            return json.load(file)
    except FileNotFoundError:
        raise Broken(f"no quarantine/{name}") from None


def attempts(spool):
    """Returns the name of every claimed batch, except of the worker that died before, and its attempts."""
    claimed = os.path.join(spool, "claimed")
    return [(batch, int(claim.split(".")[1]))
            for owner in names(claimed) if owner != DEAD for claim in names(claimed, owner)
            if os.path.isdir(os.path.join(claimed, owner, claim)) for batch in names(claimed, owner, claim)]


def check_verifies(spool):
    """Checks that verify finds no fault in any session of a spool."""
    check_sessions(os.path.join(spool, "output"))


def check_sessions(output):
    """Checks that verify finds no fault in any session."""
    sessions = [os.path.join(output, name) for name in names(output) if name not in (".staging", ".deleted")]
    result = subprocess.run([worker(), "verify", *sessions], stdin=subprocess.DEVNULL, capture_output=True)
    if result.returncode != 0:
        raise Broken("verify: " + (result.stdout + result.stderr).decode(errors="replace").strip()[-600:])


def published(output):
    """Returns the manifests: (session, start) to the manifest's content. Checks that every video has one."""
    found = {}
    for session in names(output):
        if session == ".staging":
            continue
        files = names(output, session)
        for name in files:
            if name.endswith(".mp4") and name[:-4] + ".json" not in files:
                raise Broken(f"output/{session}/{name} without its manifest")
            if name.startswith("segment-") and name.endswith(".json"):
                with open(os.path.join(output, session, name), "rb") as file:
                    found[session, int(name[8:-5])] = json.load(file)
    return found


references = {}


def reference(fill=fill):
    """Returns the digests of the output of an undisturbed run."""
    if fill not in references:
        with tempfile.TemporaryDirectory(prefix="torture-") as scratch:
            spool = os.path.join(scratch, "spool")
            fill(spool)
            status, said = drain(spool)
            if status not in WELL:
                raise SystemExit(f"torture: a run that nobody disturbed ended with status {status}: {said}")
            check_verifies(spool)
            references[fill] = digests(os.path.join(spool, "output"))
    return references[fill]


def skip(part, why):
    print(f"{part}: skipped, {why}", flush=True)
    return 0


def unshare_mounts():
    """Gives this process a separate mount namespace. Otherwise another test's namespace would keep our file system
    mounted. Returns the reason if that is impossible, or None."""
    libc, clone_newns = ctypes.CDLL(None, use_errno=True), 0x20000
    if libc.unshare(clone_newns) != 0:
        return f"unshare: {os.strerror(ctypes.get_errno())}"
    return mount("--make-rprivate", "/")


def mount(*arguments):
    """Mounts a file system. Returns the reason if that is impossible, or None."""
    result = subprocess.run(["mount", *arguments], capture_output=True)
    return result.stderr.decode().strip() or "mount failed" if result.returncode else None
