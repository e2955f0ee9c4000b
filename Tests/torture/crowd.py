"""Workers that go on while the disk is full, and that are killed at random while others work on the same spool."""
import os
import random
import shutil
import subprocess
import tempfile
import time

import spool as spools
from spool import Broken


def disk(short):
    """A worker on a disk that fills up goes on by itself when there is room again."""
    with tempfile.TemporaryDirectory(prefix="torture-") as scratch:
        if why := spools.mount("-t", "tmpfs", "-o", "size=16m", "torture", scratch):
            return spools.skip("disk", why)
        try:
            broken = [problem for room in ((16,) if short else (0, 4, 8, 16, 24, 32, 40, 48))
                      if (problem := full_disk(os.path.join(scratch, str(room)), room << 10))]
        finally:
            subprocess.run(["umount", "-l", scratch], check=True)
    for problem in broken:
        print(f"disk: {problem}")
    print(f"disk: {1 if short else 8} runs, {len(broken)} broken", flush=True)
    return len(broken)


def full_disk(spool, room):
    """Gives what went wrong, or None."""
    spools.fill(spool)
    filler = os.path.join(spool, "..", "filler")
    with open(filler, "wb") as file:
        left = os.statvfs(spool)
        file.write(bytes(left.f_bavail * left.f_frsize - room))
    with tempfile.NamedTemporaryFile(prefix="torture-") as log:
        running = subprocess.Popen(spools.command(spool, "--jobs", "1"), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            if not wait(lambda: b"no space left" in open(log.name, "rb").read()):
                raise Broken(f"{room} bytes: nothing was said of the full disk")
            time.sleep(2)
            if running.poll() is not None:
                raise Broken(f"{room} bytes: ended with status {running.returncode}")
            os.unlink(filler)
            if not wait(lambda: is_idle(spool)):
                raise Broken(f"{room} bytes: did not go on: {open(log.name).read()[-600:]}")
            running.terminate()
            if running.wait() != 0:
                raise Broken(f"{room} bytes: status {running.returncode} at the end")
            spools.check_same(os.path.join(spool, "output"), spools.reference())
            spools.check_quarantine(spool)
            spools.check_at_rest(spool)
        except Broken as broken:
            return str(broken)
        finally:
            running.kill()
            running.wait()
            if os.path.exists(filler):
                os.unlink(filler)
            shutil.rmtree(spool)
    return None


def is_idle(spool):
    return not any(spools.names(spool, place) for place in ("incoming", "trash", "claimed/" + spools.DEAD)) \
        and not spools.attempts(spool)


def wait(condition, seconds=90):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def workers(short, seed=1):
    """Eight workers that are killed at random share a spool."""
    amount, sessions = (60, 6) if short else (2000, 40)

    def fill(spool):
        spools.make(spool)
        for number in range(amount):
            spools.add_small(spool, number, sessions)

    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="torture-") as scratch:
        spool = os.path.join(scratch, "spool")
        fill(spool)
        killed = kill_at_random(spool, dice, amount // 20)
        retried = 0
        try:
            status, said = spools.drain(spool)
            if status not in spools.WELL:
                raise Broken(f"status {status}: {said}")
            retried = retry(spool)
            spools.check_same(os.path.join(spool, "output"), spools.reference(fill))
            spools.check_at_rest(spool)
            found = [time for one in spools.published(os.path.join(spool, "output")).values()
                     for time in (frame["timeMs"] for frame in one["frames"] if frame["status"] == "captured")]
            owed = [spools.START + number * 10_000 + frame * 1_000
                    for number in range(amount) for frame in range(7 if number % 3 == 0 else 2)]
            if sorted(found) != owed:
                raise Broken(f"{len(found)} frames are published, {len(owed)} were submitted")
            spools.check_verifies(spool)
            problem = None
        except Broken as broken:
            problem = broken
    print(f"workers: {amount} batches, {killed} kills (seed {seed}), {retried} batches given up and tried again, "
          + (f"broken: {problem}" if problem else "0 broken"), flush=True)
    return problem is not None


def kill_at_random(spool, dice, enough):
    """Runs eight workers until a tenth is left, or long enough, and kills one after the other."""
    total, killed = len(spools.names(spool, "incoming")), 0
    running = []
    while len(spools.names(spool, "incoming")) > total // 10 and killed < enough * 10:
        while len(running) < 8:
            running.append(subprocess.Popen(spools.command(spool, "--jobs", dice.choice("12")), stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        time.sleep(dice.uniform(0.05, 0.4))
        victim = running.pop(dice.randrange(len(running)))
        victim.kill()
        victim.wait()
        killed += 1
    for one in running:
        one.kill()
        one.wait()
    return killed + len(running)


def retry(spool):
    """Batches that three workers died with are in quarantine, and not published; tried again they are."""
    seen = spools.published(os.path.join(spool, "output"))
    given_up = [name for name in spools.names(spool, "quarantine") if not name.endswith(".reason.json")]
    for name in given_up:
        cause = spools.reason(spool, name + ".reason.json")["cause"]
        if "workers died" not in cause:
            raise Broken(f"{name} is in quarantine: {cause}")
        if any(one["batch"] == name for one in seen.values()):
            raise Broken(f"{name} is in quarantine and published")
        os.rename(os.path.join(spool, "quarantine", name), os.path.join(spool, "incoming", name))
        os.unlink(os.path.join(spool, "quarantine", name + ".reason.json"))
    status, said = spools.drain(spool)
    if status != 0:
        raise Broken(f"tried again: status {status}: {said}")
    return len(given_up)
