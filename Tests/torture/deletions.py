"""Kills `delete` before every call that changes a file, and checks that the session is whole or gone."""
import os
import shutil
import signal
import subprocess
import tempfile
from concurrent.futures import ProcessPoolExecutor

import calls
import spool as spools
import tracer
from spool import DEAD, START, Broken

SESSION = "walk"
# Pictures of a fixture that no other session of the spool has.
OWN, OTHER = ("0000.jpg", "0001.jpg", "0002.jpg"), ("0006.jpg", "0007.jpg")
# How many calls the short form tries: in `make test`, and with TEST_EXTENT=full.
KILLS = (14, 60)


def fill(spool):
    """Fills a spool with batches of a session in all states, and with published, kept and waiting ones of another."""
    spools.make(spool)
    add(spool, "walk@1", START, OWN)
    add(spool, "other@1", START, OTHER)
    status, said = spools.drain(spool, "--keep-batches", "--hls", "--thumbnails")
    if status != 0:
        raise SystemExit(f"torture: a run that nobody disturbed ended with status {status}: {said}")
    add(spool, "walk@2", START, OWN[1:])
    status, said = spools.drain(spool)
    if status != 65:
        raise SystemExit(f"torture: no conflict, but status {status}: {said}")
    add(spool, "walk@3", START + 60_000, OWN)
    add(spool, "other@2", START + 60_000, OTHER)
    waiting = os.path.join(spool, "incoming", "walk@3")
    for place in (f"claimed/{DEAD}/1.1.0/walk@3", "tmp/walk@3", "collect/0123456789abcdef/drafts/walk@3", f"trash/{DEAD}~7",
                  f"output/.staging/{DEAD}/1"):
        shutil.copytree(waiting, os.path.join(spool, place))
    for place in ("claimed", "output/.staging"):
        spools.write(os.path.join(spool, place, DEAD, "alive"), b"")
    spools.write(os.path.join(spool, "collect", "0123456789abcdef", "journal"), b"{}\n")


def add(spool, name, start, pictures):
    spools.add(spool, name, {start + 1_000 * number: picture for number, picture in enumerate(pictures)})


def command(spool):
    return [spools.worker(), "delete", SESSION, "--spool", spool, "--reason", "torture"]


def middle(path):
    with open(path, "rb") as file:
        content = file.read()
    return content[len(content) // 2:][:48]


def needles(spool):
    """Returns bytes of every picture and every video of the session."""
    output = os.path.join(spool, "output", SESSION)
    videos = [os.path.join(output, name) for name in spools.names(output) if name.endswith(".mp4")]
    return [middle(os.path.join(spools.FIXTURES, "exact-1fps", name)) for name in OWN] + [middle(path) for path in videos]


def copies(spool, wanted):
    """Returns the files below the spool that have bytes of a picture of the session."""
    found = []
    for path, _, files in os.walk(spool):
        for name in files:
            with open(os.path.join(path, name), "rb") as file:
                content = file.read()
            if any(needle in content for needle in wanted):
                found.append(os.path.relpath(os.path.join(path, name), spool))
    return found


def disturbed(nth, full):
    """Kills `delete` before its nth call that changes a file. Returns the fault, or None, and the call."""
    with tempfile.TemporaryDirectory(prefix="torture-") as scratch:
        spool = os.path.join(scratch, "spool")
        shutil.copytree(full, spool, symlinks=True)
        wanted, before = needles(spool), spools.digests(os.path.join(spool, "output", SESSION))
        others = {name: digest for name, digest in digests(spool).items() if name.startswith("other/")}
        run = tracer.run(command(spool), spool, calls.changes, nth, None, os.path.join(scratch, "log"))
        if len(run.calls) < nth:
            return None, None
        call = run.calls[nth - 1]
        try:
            if run.status != -signal.SIGKILL:
                raise Broken(f"status {run.status} instead of a kill")
            check_whole_or_gone(spool, before)
            is_deleted = os.path.exists(os.path.join(spool, "output", ".deleted", SESSION + ".json"))
            if is_deleted:
                # A batch that comes later stays out, also before the deletion is finished.
                add(spool, "walk@4", START + 120_000, OWN)
                drain(spool)
                check_whole_or_gone(spool, before)
            result = subprocess.run(command(spool), stdin=subprocess.DEVNULL, capture_output=True)
            if result.returncode != 0:
                raise Broken(f"the next delete ended with status {result.returncode}: {result.stderr.decode()}")
            drain(spool)
            if left := copies(spool, wanted):
                raise Broken(f"bytes of its pictures are in {left}")
            if left := spools.names(spool, "quarantine"):
                raise Broken(f"left in quarantine: {left}")
            if left := [name for name in spools.names(spool, "output") if name not in (".deleted", ".staging", "other")]:
                raise Broken(f"left in output: {left}")
            if (left := spools.names(spool, "output", ".deleted")) != [SESSION + ".json"]:
                raise Broken(f"in .deleted: {left}")
            spools.check_at_rest(spool)
            for name, digest in others.items():
                if name.endswith((".mp4", ".m4s")) and digests(spool).get(name) != digest:
                    raise Broken(f"output/{name} has changed")
            spools.check_verifies(spool)
        except Broken as broken:
            return f"{broken}\n  it said: {run.errors.strip()}", call
    return None, call


def drain(spool):
    status, said = spools.drain(spool, "--hls", "--keep-batches")
    if status != 0:
        raise Broken(f"a drain ended with status {status}: {said}")


def digests(spool):
    output = os.path.join(spool, "output")
    return {f"{session}/{name}": digest for session in spools.names(output) if not session.startswith(".")
            for name, digest in spools.digests(os.path.join(output, session)).items()}


def check_whole_or_gone(spool, before):
    """The session is as before, or there is no such directory."""
    session = os.path.join(spool, "output", SESSION)
    if os.path.exists(session) and spools.digests(session) != before:
        raise Broken("the session is neither whole nor gone")


def deletions(short):
    if why := tracer.why_not():
        return spools.skip("deletions", why)
    with tempfile.TemporaryDirectory(prefix="torture-") as scratch:
        full, copy = os.path.join(scratch, "full"), os.path.join(scratch, "copy")
        fill(full)
        if len(copies(full, needles(full))) < 10:
            raise SystemExit("torture: too few copies of the pictures are found")
        shutil.copytree(full, copy, symlinks=True)
        total = len(tracer.run(command(copy), copy, calls.changes).calls)
        points = calls.sample(total, calls.amount(short, *KILLS))
        broken = done = 0
        with ProcessPoolExecutor(2) as pool:
            for nth, (problem, call) in zip(points, pool.map(disturbed, points, [full] * len(points))):
                done += call is not None
                if problem:
                    broken += 1
                    print(f"deletions, call {nth} ({call.name} {' '.join(call.paths)}): {problem}", flush=True)
    print(f"deletions: {done} runs of {total} calls, {broken} broken", flush=True)
    return broken
