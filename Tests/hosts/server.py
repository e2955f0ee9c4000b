"""Runs this kernel's NFS server, and networks of hosts that reach it. Needs a machine that serves nothing else by
NFS."""
import os
import subprocess
import time

from spool import Broken

NET = "10.177.0"
ADDRESS = f"{NET}.1"
STATE = "/var/lib/nfs"
# The server's lease, in seconds. With the default of 90, a dead host's locks would stay that long.
LEASE = 10


def call(*command):
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if result.returncode:
        raise Broken(f"{' '.join(command)}: {result.stderr.strip() or result.returncode}")
    return result.stdout


def why_not():
    """Returns the reason why this machine cannot run a server, or None."""
    if os.geteuid() != 0:
        return "it takes root"
    for module in ("nfsd", "nfs", "nfsv4", "nfsv3", "veth", "bridge", "loop", "ext4"):
        subprocess.run(["sh", "-c", f"modprobe -q {module}"], capture_output=True)
    with open("/proc/filesystems") as file:
        known = file.read().split()
    if missing := [kind for kind in ("nfsd", "nfs4") if kind not in known]:
        return f"no {missing[0]} in this kernel"
    for program in ("rpc.nfsd", "rpc.mountd", "exportfs", "mount.nfs4", "ip"):
        if subprocess.run(["sh", "-c", f"command -v {program}"], capture_output=True).returncode:
            return f"no {program}"
    if os.path.exists("/proc/fs/nfsd/threads"):
        with open("/proc/fs/nfsd/threads") as file:
            if int(file.read()):
                return "this machine serves files by NFS already"
    return None


class Server:
    """Exports a separate ext4 file system. Hosts are clients in networks that share a bridge."""

    def __init__(self, scratch, megabytes=768):
        self.export = os.path.join(scratch, "export")
        self.image, self.bytes = os.path.join(scratch, "image"), megabytes << 20
        self.daemons, self.links = [], {}

    def open(self):
        os.makedirs(self.export)
        with open(self.image, "wb") as file:
            file.truncate(self.bytes)
        call("mkfs.ext4", "-q", "-F", self.image)
        call("mount", "-o", "loop", self.image, self.export)
        for place in (STATE, STATE + "/v4recovery"):
            os.makedirs(place, exist_ok=True)
        for name in ("etab", "rmtab"):
            open(os.path.join(STATE, name), "a").close()
        if not os.path.ismount("/proc/fs/nfsd"):
            call("mount", "-t", "nfsd", "nfsd", "/proc/fs/nfsd")
        call("ip", "link", "add", "nfshosts", "type", "bridge")
        call("ip", "address", "add", ADDRESS + "/24", "dev", "nfshosts")
        call("ip", "link", "set", "nfshosts", "up")
        if subprocess.run(["sh", "-c", "command -v rpcbind"], capture_output=True).returncode == 0:
            subprocess.run(["rpcbind", "-w"], capture_output=True)
        self.start()
        self.share()
        self.daemons.append(subprocess.Popen(["rpc.mountd", "-F", "-p", "20048"], stdin=subprocess.DEVNULL,
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def start(self):
        for name in ("nfsv4leasetime", "nfsv4gracetime"):
            with open("/proc/fs/nfsd/" + name, "w") as file:
                file.write(str(LEASE))
        call("rpc.nfsd", "8")

    def stop(self):
        call("rpc.nfsd", "0")

    def share(self):
        call("exportfs", "-o", "rw,sync,no_root_squash,no_subtree_check,insecure,fsid=0", f"{NET}.0/24:{self.export}")

    def unshare(self):
        call("exportfs", "-u", f"{NET}.0/24:{self.export}")
        call("exportfs", "-f")

    def connect(self, name):
        """Makes a network for a host. Returns the command prefix that enters it."""
        number = len(self.links) + 2
        link = f"nfs{number}"
        self.links[name] = link
        call("ip", "netns", "add", link)
        call("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", link)
        call("ip", "link", "set", link, "master", "nfshosts", "up")
        for words in (("address", "add", f"{NET}.{number}/24", "dev", "eth0"), ("link", "set", "eth0", "up"),
                      ("link", "set", "lo", "up")):
            call("ip", "-n", link, *words)
        return ["ip", "netns", "exec", link]

    def cut(self, name):
        call("ip", "link", "set", self.links[name], "down")

    def mend(self, name):
        call("ip", "link", "set", self.links[name], "up")

    def calls(self, name):
        """Returns the number of NFS calls of a host."""
        text = call("ip", "netns", "exec", self.links[name], "cat", "/proc/net/rpc/nfs")
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("rpc "))

    def close(self):
        for link in self.links.values():
            subprocess.run(["ip", "netns", "delete", link], capture_output=True)
        subprocess.run(["rpc.nfsd", "0"], capture_output=True)
        subprocess.run(["exportfs", "-ua"], capture_output=True)
        for daemon in self.daemons:
            daemon.kill()
            daemon.wait()
        subprocess.run(["ip", "link", "delete", "nfshosts"], capture_output=True)
        time.sleep(1)
        subprocess.run(["umount", "-l", self.export], capture_output=True)
