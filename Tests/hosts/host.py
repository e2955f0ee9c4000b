"""A host that is none: processes with mounts, a name, process numbers, a network and a clock of their own."""
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "torture"))

import spool as spools
from spool import Broken

# Name, mount point, what mounts the spool there, then what is to run. The shell stays as the host's first process.
BOOT = """
name=$1 place=$2 mount=$3; shift 3
hostname "$name" && eval "$mount" || exit 71
"$@" &
wait $!
"""


def namespaces():
    """How this machine makes a host: arguments of unshare, and why not where it makes none."""
    why = "no unshare"
    if not shutil.which("unshare"):
        return None, why
    for user in ([], ["--user", "--map-root-user"]):
        for clock in (True, False):
            flags = [*user, "--mount", "--uts", "--ipc", "--pid", "--net", "--fork", "--kill-child", "--mount-proc"]
            probe = subprocess.run(["unshare", *flags, *offset(7 if clock else None), "sh", "-c",
                                    "hostname probe && mount --bind /tmp /tmp"],
                                   capture_output=True)
            if probe.returncode == 0:
                return (flags, clock), None
            why = probe.stderr.decode(errors="replace").strip()
    return None, why


def offset(seconds):
    return ["--time", "--monotonic", str(seconds)] if seconds is not None else []


class Host:
    """Has a worker at most; `network` is put before what enters the host's network; `mount` mounts at $place what has the spool `within`."""

    def __init__(self, name, spool, scratch, ways, clock=0, network=(), mount=None, within=""):
        self.name, self.spool, self.network = name, spool, list(network)
        self.place = os.path.join(scratch, name)
        self.seen = os.path.join(self.place, within) if within else self.place
        self.log = os.path.join(scratch, name + ".log")
        self.mount = mount or f"mount --bind '{spool}' \"$place\""
        flags, has_clock = ways
        self.flags = [*flags, *offset(clock if has_clock else None)]
        self.running = None
        os.makedirs(self.place, exist_ok=True)

    def command(self, *words):
        return [*self.network, "unshare", *self.flags, "sh", "-c", BOOT, "boot", self.name, self.place, self.mount, *words]

    def run(self, *words):
        """Runs something to its end; gives the status and what was said."""
        result = subprocess.run(self.command(*words), stdin=subprocess.DEVNULL, capture_output=True)
        return result.returncode, (result.stdout + result.stderr).decode(errors="replace")

    def start(self, *options):
        with open(self.log, "ab") as log:
            self.running = subprocess.Popen(self.command(spools.worker(), "--spool", self.seen, "-v", *options),
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def processes(self):
        """All of the host's, the first one first."""
        parents = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parents.setdefault(int(file.read().rsplit(b")", 1)[1].split()[1]), []).append(int(name))
            except (FileNotFoundError, ProcessLookupError):
                pass
        found, ahead = [], parents.get(self.running.pid, [])
        while ahead:
            found += ahead
            ahead = [child for one in ahead for child in parents.get(one, [])]
        return found


    def signal_all(self, number):
        # Those that start others come last to stop and first to go on; a fork between two looks is caught by the second.
        for _ in range(2):
            for process in self.processes():
                send(process, number)

    def freeze(self):
        self.signal_all(signal.SIGSTOP)

    def thaw(self):
        self.signal_all(signal.SIGCONT)

    def lose_power(self):
        """All its processes end at once."""
        if self.lives():
            self.kill()
            self.end()

    def kill(self):
        """Does not wait: over NFS a process may have to be waited for until its server is back."""
        for first in self.processes()[:1] or [self.running.pid]:
            send(first, signal.SIGKILL)

    def stop(self):
        """Asks the worker to end; gives its status."""
        for process in self.processes()[1:2]:
            send(process, signal.SIGTERM)
        return self.end()

    def end(self, seconds=spools.HANG_S):
        """Waits for the worker to end; gives its status."""
        try:
            return self.running.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Broken(f"{self.name} does not end in {seconds} s: {', '.join(map(whereabouts, self.processes()))}") from None

    def lives(self):
        return self.running is not None and self.running.poll() is None

    def holds(self):
        """The batches in the hands of this host's workers, dead or alive."""
        claimed = os.path.join(self.spool, "claimed")
        return [batch for owner in spools.names(claimed) if owner.startswith(self.name + "~")
                for claim in spools.names(claimed, owner) if os.path.isdir(os.path.join(claimed, owner, claim))
                for batch in spools.names(claimed, owner, claim)]

    def said(self):
        with open(self.log, errors="replace") as file:
            return file.read()


def whereabouts(process):
    """What a process waits for in the kernel."""
    try:
        with open(f"/proc/{process}/comm") as name, open(f"/proc/{process}/wchan") as place:
            return f"{process} {name.read().strip()} in {place.read() or '?'}"
    except (FileNotFoundError, ProcessLookupError):
        return f"{process} gone"


def send(process, number):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass
