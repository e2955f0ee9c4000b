"""The failures of hosts that share a spool, and the checks at the end."""
import functools
import os
import threading
import time

import spool as spools
from crowd import wait
from spool import Broken

SESSIONS = 6
LEASE = "10"


def add(spool, numbers):
    for number in numbers:
        spools.add_small(spool, number, SESSIONS)


@functools.cache
def filling(amount):
    """Returns a function that fills a spool; always the same function for the same amount."""
    def fill(spool):
        spools.make(spool)
        add(spool, range(amount))
    return fill


def check(spool, amount):
    """Checks that every batch is published once, with the bytes of an undisturbed run, and that none is left."""
    output = os.path.join(spool, "output")
    spools.check_same(output, spools.reference(filling(amount)))
    spools.check_at_rest(spool)
    if found := spools.names(spool, "quarantine"):
        raise Broken(f"in quarantine: {', '.join(found)}")
    found = [frame["timeMs"] for one in spools.published(output).values() for frame in one["frames"]
             if frame["status"] == "captured"]
    owed = [spools.START + number * 10_000 + frame * 1_000
            for number in range(amount) for frame in range(7 if number % 3 == 0 else 2)]
    if sorted(found) != owed:
        raise Broken(f"{len(found)} frames are published, {len(owed)} were submitted")
    spools.check_verifies(spool)


def catch(host):
    """Freezes a host while it holds batches. Returns their names."""
    held = []

    def is_caught():
        nonlocal held
        # Freezes it only while it holds a batch: on a slow machine, a host that is frozen again and again never claims
        # one.
        if not host.holds():
            return False
        host.freeze()
        held = host.holds()
        if not held:
            host.thaw()
        return bool(held)

    if not wait(is_caught, pause=0.005):
        raise Broken(f"{host.name} held no batch in {spools.HANG_S} s: {host.said()[-600:]}")
    return held


def is_owed(spool, hosts):
    return spools.names(spool, "incoming") or spools.names(spool, "trash") or any(host.holds() for host in hosts)


def require(condition, what, hosts, seconds=spools.HANG_S):
    if not wait(condition, seconds):
        raise Broken(f"{what} in {seconds} s\n" + "\n".join(f"{host.name}: {host.said()[-1_500:]}" for host in hosts))


def zombie(spool, hosts):
    """Freezes one of three hosts for longer than a lease, kills another; the third takes over from both."""
    frozen, dead, well = hosts
    spools.make(spool)
    add(spool, range(48))
    # Start the hosts one after the other: on a slow machine, the first ones to run might leave no batch for the last.
    frozen.start("--lease", LEASE, "--jobs", "2")
    lost = catch(frozen)
    dead.start("--lease", LEASE, "--jobs", "2")
    left = catch(dead)
    dead.lose_power()
    well.start("--lease", LEASE, "--jobs", "2")
    # The test has to wait for a lease anyway.
    undisturbed = threading.Thread(target=spools.reference, args=[filling(60)])
    undisturbed.start()
    require(lambda: not frozen.holds() and not dead.holds(), "no host took over the claims", hosts)
    require(lambda: all(f" batch.recovered batch={name} " in well.said() for name in lost + left), f"{well.name} logged no recovery of all claims", hosts)
    # The frozen host may hold the lock of a session for which the others wait.
    wait(lambda: not is_owed(spool, hosts), seconds=3)
    frozen.thaw()
    require(lambda: not is_owed(spool, hosts), "not every batch is done", hosts)
    if (status := well.stop()) != 0:
        raise Broken(f"{well.name} ended with {status}: {well.said()[-600:]}")
    # The frozen worker resumes after others took over its claims.
    add(spool, range(48, 60))
    require(lambda: not is_owed(spool, hosts), f"{frozen.name} did not resume", hosts)
    if (status := frozen.stop()) != 0:
        raise Broken(f"{frozen.name} ended with {status}: {frozen.said()[-600:]}")
    # The dead host restarts and cleans up its leftovers.
    dead.start("--drain")
    if (status := dead.end()) != 0:
        raise Broken(f"{dead.name}, started again, ended with {status}: {dead.said()[-600:]}")
    undisturbed.join()
    check(spool, 60)
    return f"{len(lost)} batches taken from the frozen host, {len(left)} from the dead one"


def storm(server, spool, hosts, amount, dice):
    """Over NFS: applies every failure of hosts, links and server, in random order, while batches arrive. Then all
    recover, and the hosts must publish every batch."""
    spools.make(spool)
    add(spool, range(10))
    print(f"  {calls_a_batch(server, hosts[0], 10):.0f} NFS calls a batch, undisturbed", flush=True)
    for host in hosts:
        host.start("--lease", LEASE, "--jobs", "2")
    happenings = [freeze, die, part, restart, unexport]
    dice.shuffle(happenings)
    step = (amount - 10) // len(happenings)
    for number, happening in enumerate(happenings):
        first = 10 + number * step
        add(spool, range(first, amount if number == len(happenings) - 1 else first + step))
        # Waits until a host works on a batch, then a random time.
        require(lambda: any(host.holds() for host in hosts) or not is_owed(spool, hosts), "no host works", hosts)
        time.sleep(dice.uniform(0, 2))
        happening(server, dice.choice(hosts), dice)
        print(f"  {happening.__name__}", flush=True)
        for host in hosts:
            if not host.lives():
                raise Broken(f"{host.name} ended after {happening.__name__}: {host.running.poll()}")
    require(lambda: not is_owed(spool, hosts), "not every batch is done", hosts)
    for host in hosts:
        if (status := host.stop()) != 0:
            raise Broken(f"{host.name} ended with {status}: {host.said()[-600:]}")
    print("  all have ended", flush=True)
    # The next worker of the same name cleans up after a dead host, once the server has released the host's locks.
    time.sleep(2 * int(LEASE))
    for host in hosts:
        host.start("--drain")
        if (status := host.end()) != 0:
            raise Broken(f"{host.name} drained with {status}: {host.said()[-600:]}")
    retried = sum(host.said().count(" batch.recovered ") for host in hosts)
    check(spool, amount)
    return f"{retried} batches taken over, "


def calls_a_batch(server, host, amount):
    """Counts the NFS calls of a drain by a single host."""
    host.start("--drain", "--jobs", "1")
    before = server.calls(host.name)
    if (status := host.end()) != 0:
        raise Broken(f"{host.name} drained with {status}: {host.said()[-1_500:]}")
    return (server.calls(host.name) - before) / amount


def freeze(server, host, dice):
    """Freezes a host, sometimes for longer than a lease."""
    host.freeze()
    time.sleep(dice.uniform(5, 2.5 * int(LEASE)))
    host.thaw()


def die(server, host, dice):
    """Kills a host without any shutdown. It restarts under the same name."""
    server.cut(host.name)
    host.kill()
    time.sleep(dice.uniform(0, 2 * int(LEASE)))
    server.mend(host.name)
    host.lose_power()
    host.start("--lease", LEASE, "--jobs", "2")


def part(server, host, dice):
    """Takes a host's link down, sometimes for longer than the leases of the server and of the claims."""
    server.cut(host.name)
    time.sleep(dice.uniform(5, 2.5 * int(LEASE)))
    server.mend(host.name)


def restart(server, host, dice):
    server.stop()
    time.sleep(dice.uniform(0, int(LEASE)))
    server.start()


def unexport(server, host, dice):
    """Withdraws the export for a while. Requests fail (permission denied, stale file handle); cached data may still be
    readable."""
    server.unshare()
    time.sleep(dice.uniform(2, int(LEASE)))
    server.share()
