"""A simulated host: processes with their own mounts, host name, process numbers, network and clock."""
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "torture"))

import spool as spools
from spool import Broken

# The host name, the mount point, the command that mounts the spool there, then the program. The shell stays as the
# host's first process.
BOOT = """
name=$1 place=$2 mount=$3; shift 3
hostname "$name" && eval "$mount" || exit 71
"$@" &
wait $!
"""


def namespaces():
    """Returns the arguments of unshare that make a host, and the reason if this machine cannot make one."""
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
    """A host with at most one worker.

    `network` is the command prefix that enters the host's network. `mount` mounts the file system that has the spool
    `within` it at $place."""

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
        """Runs a command to its end. Returns its status and its output."""
        result = subprocess.run(self.command(*words), stdin=subprocess.DEVNULL, capture_output=True)
        return result.returncode, (result.stdout + result.stderr).decode(errors="replace")

    def start(self, *options):
        with open(self.log, "ab") as log:
            self.running = subprocess.Popen(self.command(spools.worker(), "--spool", self.seen, "-v", *options),
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def processes(self):
        """Returns all processes of the host, the first one first."""
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
        # Stops parents last and continues them first. The second pass stops processes that were forked during the
        # first.
        for _ in range(2):
            for process in self.processes():
                send(process, number)

    def freeze(self):
        self.signal_all(signal.SIGSTOP)

    def thaw(self):
        self.signal_all(signal.SIGCONT)

    def lose_power(self):
        """Kills all processes of the host at once."""
        if self.lives():
            self.kill()
            self.end()

    def kill(self):
        """Kills without waiting: over NFS, a process may not end before its server is back."""
        for first in self.processes()[:1] or [self.running.pid]:
            send(first, signal.SIGKILL)

    def stop(self):
        """Asks the worker to stop. Returns its status."""
        for process in self.processes()[1:2]:
            send(process, signal.SIGTERM)
        return self.end()

    def end(self, seconds=spools.HANG_S):
        """Waits for the worker to end. Returns its status."""
        try:
            return self.running.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Broken(f"{self.name} does not end in {seconds} s: {', '.join(map(whereabouts, self.processes()))}") from None

    def lives(self):
        return self.running is not None and self.running.poll() is None

    def holds(self):
        """Returns the batches that this host's workers have claimed, dead or alive."""
        claimed = os.path.join(self.spool, "claimed")
        return [batch for owner in spools.names(claimed) if owner.startswith(self.name + "~")
                for claim in spools.names(claimed, owner) if os.path.isdir(os.path.join(claimed, owner, claim))
                for batch in spools.names(claimed, owner, claim)]

    def said(self):
        with open(self.log, errors="replace") as file:
            return file.read()


def whereabouts(process):
    """Describes where a process waits in the kernel."""
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
