#!/usr/bin/python3
"""Hosts that share a spool over NFS: frozen, dead, cut off, their server restarted and its export taken away; nothing is lost
or doubled.

Usage: nfs.py [--batches N] [--seed N] [--rounds N] [KIND...]

KINDs of mounts: hard soft v3; by default all, --rounds times. The server is this machine's kernel, the hosts are clients in
namespaces (host.py, server.py). It takes root, and a kernel with NFS; where there is none, scripts/nightly-nfs starts one in
a virtual machine. ENCODER_WORKER names the program.
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

# Attributes are cached as by default. v3 keeps locks to the host: rpc.statd is one for a machine, not for a network.
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
