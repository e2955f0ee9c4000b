"""Tests the Slurm example on a private Slurm: munged, slurmctld and one slurmd on loopback, in a temporary directory.

An array of 4 tasks shares 80 batches; 8 tasks and 200 batches with TEST_EXTENT=full. The test kills one task's process
half-way, and the task's script requeues the task. As administrator, the test requeues another running task. The output
must equal that of one run, byte for byte.
"""
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from batches import EXAMPLES, IS_FULL, Broken, add_held, check, encoders, end, expected, fill, hold, until, worker

BATCHES, TASKS = (200, 8) if IS_FULL else (80, 4)
KILLED, PUT_BACK = 0, 3

# A node refuses a job older than cred_expire seconds, and a requeued job waits as long.
CONF = """
ClusterName=engines
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
SlurmdPort={node}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={root}/munge.socket,cred_expire=15
CryptoType=crypto/munge
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1
JobRequeue=1
ReturnToService=2
MinJobAge=600
KillWait=2
CompleteWait=0
SlurmdTimeout=60
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=16000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    """One controller and one node. The configuration gives the node room for two of the example's tasks."""

    def __init__(self, root):
        self.root, self.started = root, []
        for name in ("state", "spool", "logs"):
            os.mkdir(os.path.join(root, name))
        # Slurm identifies the node by the machine's host name.
        values = dict(root=root, user=getpass.getuser(), host=socket.gethostname().split(".")[0],
                      control=free_port(), node=free_port())
        with open(self.path("slurm.conf"), "w") as file:
            file.write(CONF.format(**values))
        with open(self.path("munge.key"), "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(os.urandom(1024))
        self.environment = {**os.environ, "SLURM_CONF": self.path("slurm.conf")}
        self.environment["PATH"] = os.path.dirname(worker()) + ":/usr/sbin:/usr/bin:/sbin:/bin"

    def path(self, name):
        return os.path.join(self.root, name)

    def start(self):
        self.daemon("munged", "--foreground", "--force", f"--key-file={self.path('munge.key')}",
                    f"--socket={self.path('munge.socket')}", f"--pid-file={self.path('munged.pid')}",
                    f"--log-file={self.path('munged.log')}", f"--seed-file={self.path('munge.seed')}", "--num-threads=2")
        until("munged listens", lambda: os.path.exists(self.path("munge.socket")))
        self.daemon("slurmctld", "-D", "-c", "-f", self.path("slurm.conf"))
        until("slurmctld answers", lambda: "UP" in self.ask("scontrol", "ping"))
        self.daemon("slurmd", "-D", "-c", "-f", self.path("slurm.conf"))
        until("the node is idle", lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"))

    def daemon(self, *command):
        with open(self.path("logs/" + command[0]), "wb") as log:
            self.started.append(subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                                                 stderr=log, start_new_session=True))

    def ask(self, *command):
        return subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True).stdout

    def order(self, *command, **variables):
        """Runs a command of an administrator or user, which must succeed."""
        result = subprocess.run(command, env={**self.environment, **variables}, stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, cwd=self.root)
        if result.returncode != 0:
            raise Broken(f"{' '.join(command)}: {result.stderr.strip()}")
        return result.stdout.strip()

    def jobs(self):
        """Returns Slurm's report on each task and job."""
        text = self.ask("scontrol", "-o", "show", "job")
        return [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in text.splitlines()]

    def stop(self):
        """Stops the jobs, then the daemons. Leaves no process, even after a failure."""
        self.ask("scancel", "--full", "--signal=KILL", f"--user={getpass.getuser()}")
        for daemon in reversed(self.started):
            daemon.terminate()
        for daemon in reversed(self.started):
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        end(self.root)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def workers(cluster, task):
    """Returns the encoder of this task, if it runs."""
    return encoders(cluster.root, f"\0SLURM_ARRAY_TASK_ID={task}\0")


def half_way(cluster, array, task):
    """Waits until the task's encoder has reported some batches, and returns it. The held batch keeps it from
    ending."""
    try:
        with open(cluster.path(f"encode-{array}_{task}.log")) as file:
            return file.read().count(": published") >= 5 and workers(cluster, task)
    except OSError:
        return []


def disturb(cluster, array, task):
    """Kills one task's process, which its script handles; requeues another task, as an administrator would."""
    until(f"task {task} is half-way", lambda: half_way(cluster, array, task))
    before = workers(cluster, task)
    if task == KILLED:
        for process in before:
            os.kill(process, signal.SIGKILL)
    else:
        cluster.order("scontrol", "requeue", f"{array}_{task}")
    until(f"task {task} has ended", lambda: not set(before) & set(workers(cluster, task)))


def run(root):
    batches, output = os.path.join(root, "batches"), os.path.join(root, "output")
    fill(batches, BATCHES - 2)
    held = {task: add_held(batches, task, TASKS) for task in (KILLED, PUT_BACK)}
    alone = expected(batches, os.path.join(root, "alone"))
    cluster = Cluster(root)
    try:
        cluster.start()
        locks = {task: hold(output, session) for task, session in held.items()}
        finish = cluster.order(os.path.join(EXAMPLES, "slurm", "submit"), batches, output, f"--array=0-{TASKS - 1}")
        array = next(job["ArrayJobId"] for job in cluster.jobs() if "ArrayJobId" in job)
        for task in held:
            disturb(cluster, array, task)
            os.close(locks[task])
        until("all jobs have ended", lambda: not cluster.ask("squeue", "-h"))
        check_jobs(cluster)
        # The array has finished all batches: the last step finds none left.
        with open(cluster.path(f"encode-finish-{finish}.log")) as file:
            if (lines := file.read()).count(": published before: ") != BATCHES:
                raise Broken(f"the last step found unpublished batches: {lines}")
        check(output, alone)
    except Broken:
        for name in ("slurmctld.log", "slurmd.log"):
            with open(cluster.path(name)) as file:
                print("".join(file.readlines()[-30:]), file=sys.stderr)
        raise
    finally:
        cluster.stop()
    print(f"slurm: {BATCHES} batches in {TASKS} tasks, one killed and one put back: the same as one run")


def check_jobs(cluster):
    """Checks that all jobs succeeded, and that the two disturbed ones started twice."""
    ends = {job.get("ArrayTaskId", "finish"): (job["JobState"], job["ExitCode"], job["Restarts"])
            for job in cluster.jobs()}
    names = [str(task) for task in range(TASKS)] + ["finish"]
    again = (str(KILLED), str(PUT_BACK))
    if ends != {name: ("COMPLETED", "0:0", "1" if name in again else "0") for name in names}:
        raise Broken(f"unexpected job states: {ends}")


def main():
    if missing := [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if not shutil.which(
            name, path=os.environ.get("PATH", "") + ":/usr/sbin")]:
        sys.exit(f"slurm: no {missing[0]} here; apt-get install slurm-wlm munge")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # The path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp") as root:
        run(root)


if __name__ == "__main__":
    main()
