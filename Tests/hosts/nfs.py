#!/usr/bin/python3
"""Tests hosts that share a spool over NFS. Hosts freeze, die and lose the network; the server restarts and loses its
export. No batch is lost or duplicated.

Usage: nfs.py [--batches N] [--seed N] [--rounds N] [KIND...]

KINDs of mounts: hard soft v3; by default all, --rounds times. This machine's kernel is the server. The hosts are
clients in namespaces (host.py, server.py). The test needs root, and a kernel with NFS. Without these, run
scripts/nightly-nfs, which starts a virtual machine. ENCODER_WORKER names the program.
"""
import argparse
import os
import random
import shutil
import tempfile
import time

from host import Host, namespaces
from server import ADDRESS, Server, why_not
from spool import Broken
import rounds

# Attributes are cached with the default times. v3 keeps locks local to the host: rpc.statd serves a machine, not a
# network namespace.
KINDS = {"hard": "vers=4.2,hard", "soft": "vers=4.2,soft,timeo=30,retrans=2",
         "v3": "vers=3,hard,nolock,proto=tcp,mountproto=tcp,mountport=20048"}


def hosts_of(server, spool, scratch, ways, kind, names):
    flags, clock = ways
    source = "/" if kind != "v3" else server.export
    made = []
    for number, name in enumerate(names):
        network = server.connect(name) if name not in server.links else ["ip", "netns", "exec", server.links[name]]
        mount = f'mount -t nfs -o {KINDS[kind]} {ADDRESS}:{source} "$place"'
        made.append(Host(name, spool, scratch, ([flag for flag in flags if flag != "--net"], clock),
                         1_000_000 * number, network, mount, "spool"))
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=240)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    options = parser.parse_args()
    if unknown := set(options.kinds) - KINDS.keys():
        parser.error(f"no such kind: {', '.join(sorted(unknown))}")
    ways, why = namespaces()
    if why := why or why_not():
        print(f"nfs: not here, {why}")
        raise SystemExit(69)
    broken = 0
    with tempfile.TemporaryDirectory(prefix="hosts-") as scratch:
        server = Server(scratch)
        try:
            server.open()
            for number in range(options.rounds):
                for kind in options.kinds or KINDS:
                    broken += one(server, scratch, ways, kind, options.batches, options.seed + number)
        finally:
            server.close()
    raise SystemExit(1 if broken else 0)


def one(server, scratch, ways, kind, amount, seed):
    spool = os.path.join(server.export, "spool")
    hosts = hosts_of(server, spool, scratch, ways, kind, ("replay-1", "replay-2", "replay-3"))
    since = time.monotonic()
    try:
        said, problem = rounds.storm(server, spool, hosts, amount, random.Random(seed)), None
    except Broken as caught:
        said, problem = "", caught
    for host in hosts:
        server.mend(host.name)
        host.lose_power()
        if problem:
            print(f"--- {host.name}\n{host.said()[-3_000:]}")
        if os.path.exists(host.log):
            os.unlink(host.log)
    shutil.rmtree(spool, ignore_errors=True)
    print(f"nfs {kind}, seed {seed}: {amount} batches, {time.monotonic() - since:.0f} s, {said}"
          + (f"broken: {problem}" if problem else "0 broken"), flush=True)
    return problem is not None


if __name__ == "__main__":
    main()
