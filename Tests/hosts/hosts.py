#!/usr/bin/python3
"""Hosts that share a spool: one is frozen for longer than a lease and goes on, one dies; nothing is lost or doubled.

Usage: hosts.py

A host is a worker in namespaces of its own: mounts, name, process numbers (all workers have the same), network, and a
monotonic clock that differs by weeks where the kernel has such. Skipped, with the reason, where this machine makes none:
it takes root or user namespaces. ENCODER_WORKER names the program.
"""
import os
import tempfile

from host import Host, namespaces
import spool as spools
from spool import Broken
import rounds


def main():
    ways, why = namespaces()
    if why:
        raise SystemExit(spools.skip("hosts", why))
    with tempfile.TemporaryDirectory(prefix="hosts-") as scratch:
        spool = os.path.join(scratch, "spool")
        os.mkdir(spool)
        hosts = [Host(name, spool, scratch, ways, clock)
                 for name, clock in (("frozen", 0), ("dead", 3_000_000), ("well", 900_000))]
        try:
            print(f"hosts: {rounds.zombie(spool, hosts)}, 0 broken")
        except Broken as broken:
            print(f"hosts: broken: {broken}")
            raise SystemExit(1) from None
        finally:
            for host in hosts:
                host.lose_power()


if __name__ == "__main__":
    main()
