"""Disturbs a worker that drains a spool before its nth call, for n = 1, 2, 3 …: kills it, makes the call fail, or cuts
the power."""
import errno
import fcntl
import os
import shutil
import signal
import struct
import subprocess
import tempfile
from concurrent.futures import ProcessPoolExecutor

import spool as spools
import tracer
from spool import Broken
from tracer import Call

O_CREAT = 0o100
CHANGES = {"write", "pwrite64", "fsync", "fdatasync", "syncfs", "ftruncate", "rename", "renameat", "renameat2",
           "mkdir", "mkdirat", "rmdir", "link", "linkat", "unlink", "unlinkat", "chmod", "fchmodat"}
LOOKS = {"stat", "fstat", "lstat", "newfstatat", "statx"}
OPENS = {"open", "openat", "openat2"}
NEEDS_ROOM = {"write", "pwrite64", "fsync", "fdatasync", "syncfs", "rename", "renameat", "renameat2", "mkdir",
              "mkdirat", "link", "linkat"}


def changes(call):
    return call.name in CHANGES or call.name in OPENS and call.flags & O_CREAT


def needs_room(call):
    return call.name in NEEDS_ROOM or call.name in OPENS and call.flags & O_CREAT


def opens(call):
    return call.name in OPENS


def every(call):
    return True


def looks_at_a_session(call):
    """Returns whether a call lies between taking a session's lock and verifying the lock."""
    return call.name in LOOKS and any(
        os.path.basename(os.path.dirname(path)) == "output" and not os.path.basename(path).startswith(".")
        for path in call.paths)


# Error numbers, the calls that fail with them, and how many of these calls the short form tries: in `make test`, and
# with TEST_EXTENT=full. None means all calls.
FAILURES = [(errno.ENOSPC, needs_room, 3, 6), (errno.EMFILE, opens, 2, 4), (errno.EIO, every, 4, 10),
            (errno.EIO, looks_at_a_session, 5, None)]
# The same numbers for kills and for power cuts.
KILLS, POWER_CUTS = (8, 25), (3, 6)


def sample(total, short):
    """Returns the numbers of the calls to disturb: all, or a sample of `short` spread over the run."""
    if short is None or short >= total:
        return list(range(1, total + 1))
    step = total / short
    return [min(total, 1 + int(place * step + place * 7 % step)) for place in range(short)]


def amount(short, some, more):
    """Returns how many calls the short form tries; None for all."""
    return None if not short else more if spools.IS_FULL else some


def disturbed(calls, then, nth):
    """Runs a worker that is killed before the nth of these calls, or whose nth call fails; then an undisturbed worker.
    Returns the fault, or None, and the call."""
    call = None
    with tempfile.TemporaryDirectory(prefix="torture-") as scratch:
        spool = os.path.join(scratch, "spool")
        spools.fill(spool)
        try:
            run = tracer.run(spools.command(spool, "--drain", "--jobs", "1"), spool, calls, nth, then,
                             os.path.join(scratch, "log"))
        except tracer.Hangs as hangs:
            return str(hangs), hangs.call or Call("none", 0, [])
        try:
            if len(run.calls) < nth:
                return None, None
            call = run.calls[nth - 1]
            if then is None:
                if run.status != -signal.SIGKILL:
                    raise Broken(f"status {run.status} instead of a kill")
            else:
                check_failed(spool, run)
            check_recovers(spool)
        except Broken as broken:
            return f"{broken}\n  it said: {run.errors.strip()}", call
    return None, call


def check_recovers(spool):
    """A new worker finishes the rest: the output equals that of an undisturbed run, and no temporary file is left."""
    status, said = spools.drain(spool)
    if status not in spools.WELL:
        raise Broken(f"the next run ended with status {status}: {said.strip()}")
    spools.check_at_rest(spool)
    spools.prune(spool)
    spools.check_same(os.path.join(spool, "output"), spools.reference())
    spools.check_verifies(spool)
    spools.check_quarantine(spool)


def check_failed(spool, run):
    """After a run in which one call failed: each batch is in its directory, and no attempt was counted."""
    if run.status not in spools.UNWELL:
        raise Broken(f"status {run.status}")
    if held := spools.attempts(spool):
        raise Broken(f"still claimed: {held}")
    if run.status == 65 and (left := spools.names(spool, "incoming") + spools.names(spool, "claimed", spools.DEAD, "1.1.0")):
        raise Broken(f"status 65, but not done: {left}")
    for name in spools.names(spool, "quarantine"):
        if name.endswith(".reason.json") and spools.reason(spool, name)["attempt"] != 1:
            raise Broken(f"{name} counts an attempt")


def count(calls):
    """Returns how many of these calls an undisturbed run makes."""
    with tempfile.TemporaryDirectory(prefix="torture-") as scratch:
        spool = os.path.join(scratch, "spool")
        spools.fill(spool)
        return len(tracer.run(spools.command(spool, "--drain", "--jobs", "1"), spool, calls).calls)


def enumerate_calls(title, calls, then, short):
    """Disturbs one call after the other. Returns the number of failed checks."""
    points = [(calls, then, nth) for nth in sample(count(calls), short)]
    spools.reference()
    broken = done = 0
    with ProcessPoolExecutor(2) as pool:
        while points:
            for (*_, nth), (problem, call) in zip(points, pool.map(disturbed, *zip(*points))):
                done += call is not None
                if problem:
                    broken += 1
                    print(f"{title}, call {nth} ({call.name} {' '.join(call.paths)}): {problem}", flush=True)
            # A disturbed or slower run may make more calls. Continues until a run makes no nth call.
            points = [(calls, then, points[-1][-1] + 1)] if short is None and call else []
    print(f"{title}: {done} runs, {broken} broken", flush=True)
    return broken


def kills(short):
    if why := tracer.why_not():
        return spools.skip("kills", why)
    return enumerate_calls("killed", changes, None, amount(short, *KILLS))


def failures(short):
    if why := tracer.why_not():
        return spools.skip("failures", why)
    return sum(enumerate_calls(f"{errno.errorcode[code]} ({calls.__name__})", calls, code, amount(short, some, more))
               for code, calls, some, more in FAILURES)


def power(short):
    """Cuts the power before a call that changes a file. Data that was not synced is lost."""
    if why := tracer.why_not():
        return spools.skip("power", why)
    if not shutil.which("mkfs.ext4"):
        return spools.skip("power", "no mkfs.ext4")
    if why := spools.unshare_mounts():
        return spools.skip("power", why)
    with tempfile.TemporaryDirectory(prefix="torture-") as scratch:
        image, place = os.path.join(scratch, "image"), os.path.join(scratch, "disk")
        os.mkdir(place)
        broken = 0
        points = sample(count(changes), amount(short, *POWER_CUTS))
        for nth in points:
            with open(image, "wb") as file:
                file.truncate(32 << 20)
            subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
            if why := spools.mount("-o", "loop", image, place):
                return spools.skip("power", why)
            try:
                problem = cut(image, place, nth)
            finally:
                subprocess.run(["umount", "-l", place], check=True)
            if problem:
                broken += 1
                print(f"power cut, call {nth}: {problem}", flush=True)
    print(f"power: {len(points)} runs, {broken} broken", flush=True)
    return broken


def cut(image, place, nth):
    """Returns the fault, or None."""
    spool = os.path.join(place, "spool")
    spools.fill(spool)
    os.sync()

    def shut_down():
        directory = os.open(place, os.O_RDONLY)
        # EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH.
        fcntl.ioctl(directory, 0x8004587D, struct.pack("I", 2))
        os.close(directory)

    try:
        run = tracer.run(spools.command(spool, "--drain", "--jobs", "1"), spool, changes, nth, shut_down)
    except tracer.Hangs as hangs:
        return str(hangs)
    subprocess.run(["umount", place], check=True)
    if why := spools.mount("-o", "loop", image, place):
        return f"cannot be mounted any more: {why}"
    try:
        call = run.calls[nth - 1] if len(run.calls) >= nth else None
        check_recovers(spool)
    except Broken as broken:
        return f"{broken} ({call and call.name} {call and call.paths})"
    return None
