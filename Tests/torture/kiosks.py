"""Measures `collect` of many folders: a picture a second in each, while collect is killed. Each picture is collected once, none is
lost, and the CPU of collect is printed as a share of one core.

    kiosks.py [--folders 200] [--seconds 600] [--kills 10]
"""
import argparse
import glob
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

import spool as spools

with open(os.path.join(spools.FIXTURES, "exact-1fps", "0000.jpg"), "rb") as file:
    PICTURE = file.read()


class Kiosks(threading.Thread):
    """Writes a picture into each folder every second. Each has other bytes behind the end of the JPEG."""

    def __init__(self, root):
        super().__init__()
        self.root, self.written, self.late = root, {}, 0.0
        self.names = [f"kiosk-{number:03}" for number in range(arguments.folders)]
        for name in self.names:
            os.makedirs(os.path.join(root, name))

    def run(self):
        begin = time.time()
        for second in range(arguments.seconds):
            pause = begin + second - time.time()
            self.late = max(self.late, -pause)
            time.sleep(max(0, pause))
            for name in self.names:
                instant = int(1000 * (begin + second))
                draft = os.path.join(self.root, name, ".draft")
                with open(draft, "wb") as file:
                    file.write(PICTURE)
                os.rename(draft, os.path.join(self.root, name, f"{instant}.jpg"))
                self.written.setdefault(name, []).append(instant)


def collect(root, spool, log):
    return subprocess.Popen([spools.worker(), "collect", root, "--recursive", "--end-after-pause", "5", "--spool", spool],
                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def collected(spool):
    """Returns the instants of all pictures in batches, by folder."""
    found = {}
    for path in glob.glob(os.path.join(spool, "incoming", "*", "*.jpg")):
        session = os.path.basename(os.path.dirname(path))
        found.setdefault(session[:len("kiosk-000")], []).append(int(os.path.basename(path)[:13]))
    return found


def main():
    with tempfile.TemporaryDirectory(prefix="torture-", dir=arguments.scratch) as scratch, \
            tempfile.NamedTemporaryFile(prefix="torture-") as log:
        root, spool = os.path.join(scratch, "kiosks"), spools.make(os.path.join(scratch, "spool"))
        kiosks = Kiosks(root)
        kiosks.start()
        begin, chance = time.monotonic(), random.Random(1)
        process, killed = collect(root, spool, log), 0
        kills = sorted(chance.uniform(2, arguments.seconds - 2) for _ in range(arguments.kills))
        while kiosks.is_alive():
            if kills and time.monotonic() - begin > kills[0]:
                kills.pop(0)
                process.send_signal(signal.SIGKILL)
                process.wait()
                process, killed = collect(root, spool, log), killed + 1
            time.sleep(0.1)
        time.sleep(10)
        process.send_signal(signal.SIGTERM)
        status = process.wait()
        wall = time.monotonic() - begin
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = collected(spool)
        faults = [f"collect ended with {status}"] if status else []
        for name, instants in kiosks.written.items():
            if sorted(found.get(name, [])) != instants:
                got = found.get(name, [])
                faults.append(f"{name}: {len(instants)} written, {len(got)} collected, {len(set(got))} different")
        faults += [f"{path} is left" for path in glob.glob(os.path.join(root, "*", "*.jpg"))]
        for fault in faults[:20]:
            print(f"kiosks: {fault}")
        if faults:
            with open(log.name) as text:
                print(text.read()[-3000:])
        pictures = sum(map(len, kiosks.written.values()))
        print(f"kiosks: {pictures} pictures of {arguments.folders} folders in {wall:.0f} s, {killed} kills, "
              f"{100 * (used.ru_utime + used.ru_stime) / wall:.1f} % of a core, {used.ru_maxrss >> 10} MiB, "
              f"at most {kiosks.late:.1f} s behind, {len(faults)} faults")
        return 1 if faults else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folders", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--scratch", help="the directory for pictures and spool")
    arguments = parser.parse_args()
    sys.exit(main())
