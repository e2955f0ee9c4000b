"""Tests workers that wait while the disk is full, and workers that are killed at random while others share the
spool."""
import os
import random
import shutil
import subprocess
import tempfile
import time

import spool as spools
from spool import Broken


def disk(short):
    """Tests that a worker on a full disk resumes by itself when there is free space again."""
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
    """Returns the fault, or None."""
    spools.fill(spool)
    filler = os.path.join(spool, "..", "filler")
    with open(filler, "wb") as file:
        left = os.statvfs(spool)
        file.write(bytes(left.f_bavail * left.f_frsize - room))
    with tempfile.NamedTemporaryFile(prefix="torture-") as log:
        running = subprocess.Popen(spools.command(spool, "--jobs", "1"), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            if not wait(lambda: said(log.name).count("no space left") >= 2 or running.poll() is not None):
                raise Broken(f"{room} bytes: the full disk was not reported twice in {spools.HANG_S} s: {said(log.name)[-600:]}")
            if running.poll() is not None:
                raise Broken(f"{room} bytes: ended with status {running.returncode}")
            os.unlink(filler)
            if not wait(lambda: is_idle(spool)):
                raise Broken(f"{room} bytes: after space was freed, not done in {spools.HANG_S} s: {said(log.name)[-600:]}")
            running.terminate()
            if running.wait() != 0:
                raise Broken(f"{room} bytes: status {running.returncode} at the end")
            spools.check_same(os.path.join(spool, "output"), spools.reference())
            spools.check_verifies(spool)
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


def said(log):
    with open(log, errors="replace") as file:
        return file.read()


def is_idle(spool):
    return not any(spools.names(spool, place) for place in ("incoming", "trash", "claimed/" + spools.DEAD)) \
        and not spools.attempts(spool)


def wait(condition, seconds=spools.HANG_S, pause=0.05):
    """Waits until the condition is true. Returns false after the timeout in seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(pause)
    return False


def workers(short, seed=1):
    """Kills some of eight workers that share a spool, at random."""
    amount, sessions = (60, 6) if short else (2000, 40)

    def fill(spool):
        spools.make(spool)
        for number in range(amount):
            spools.add_small(spool, number, sessions)

    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="torture-") as scratch:
        spool = os.path.join(scratch, "spool")
        fill(spool)
        killed = retried = 0
        try:
            killed = kill_at_random(spool, dice, 2 if short else 10)
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


def kill_at_random(spool, dice, step):
    """Runs eight workers until a tenth of the batches is left. Kills one worker each time that `step` batches have
    left incoming/, without a time limit. Then kills the rest. Returns the number of kills."""
    left = total = len(spools.names(spool, "incoming"))
    running, killed = [], 0
    try:
        while left > total // 10:
            while len(running) < 8:
                running.append(subprocess.Popen(spools.command(spool, "--jobs", dice.choice("12")), stdin=subprocess.DEVNULL,
                                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            if not wait(lambda: len(spools.names(spool, "incoming")) <= left - step, pause=0.005):
                raise Broken(f"eight workers claimed fewer than {step} of {left} batches in {spools.HANG_S} s")
            # Waits a random time, so that the kill hits any step of the work on a batch.
            time.sleep(dice.uniform(0, 0.05))
            left = len(spools.names(spool, "incoming"))
            victim = running.pop(dice.randrange(len(running)))
            victim.kill()
            victim.wait()
            killed += 1
    finally:
        for one in running:
            one.kill()
        for one in running:
            one.wait()
    return killed + len(running)


def retry(spool):
    """Tests that batches with three dead workers are in quarantine and unpublished, and that a retry publishes
    them."""
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
        raise Broken(f"retry: status {status}: {said}")
    return len(given_up)
