#!/usr/bin/python3
"""Tests hosts that share a spool. One host freezes for longer than a lease and resumes, one dies. No batch is lost or
duplicated.

Usage: hosts.py

A host is a worker in its own namespaces: mounts, host name, process numbers (all workers have the same), network, and
a monotonic clock that differs by weeks if the kernel supports that. Hosts need root or user namespaces. Without these
the test is skipped, with the reason. ENCODER_WORKER names the program.
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
