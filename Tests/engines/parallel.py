"""Tests the example for GNU parallel: one process is killed half-way, and one batch is bad. The output must equal that
of one run. Another call does its own work, regardless of the last call's log."""
import os
import signal
import subprocess
import sys
import tempfile

from batches import EXAMPLES, HANG_S, Broken, add, add_held, check, encoders, end, expected, fill, hold, names, until, worker

BATCHES, SHARDS = 60, 4
EXAMPLE = os.path.join(EXAMPLES, "parallel", "encode")


def call(environment, root, status, *arguments):
    """Runs the example and checks its exit status. Returns its output."""
    result = subprocess.run([EXAMPLE, *arguments], env=environment, cwd=root, stdin=subprocess.DEVNULL, capture_output=True,
                            text=True)
    if result.returncode != status:
        raise Broken(f"ended with {result.returncode}, and not with {status}: {result}")
    return result.stdout


def run(root):
    batches, output, log = (os.path.join(root, name) for name in ("all batches", "output", "joblog"))
    fill(batches, BATCHES - 1)
    held = add_held(batches, 0, SHARDS)
    alone = expected(batches, os.path.join(root, "alone"))
    with open(os.path.join(batches, "bad"), "wb") as file:
        file.write(b"what is this")
    environment = {**os.environ, "PATH": os.path.dirname(worker()) + ":" + os.environ["PATH"], "JOBLOG": log,
                   "SHARDS": str(SHARDS), "PARALLEL_HOME": root}
    command = [EXAMPLE, batches, output, "--jobs", "2"]
    lock = hold(output, held)
    example = subprocess.Popen(command, env=environment, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        until("the other shards are done", lambda: len(names(output)) > 20 and len(encoders(log)) == 1)
        os.kill(encoders(log)[0], signal.SIGKILL)
        os.close(lock)
        told, said = example.communicate(timeout=HANG_S)
    finally:
        end(log)
    if example.returncode != 65:
        raise Broken(f"ended with {example.returncode}, and not with 65: {said}")
    if said.count("read bad: no known format") != 1:
        raise Broken(f"the bad batch was not attempted exactly once: {said}")
    if told.count(": published before: ") == 0:
        raise Broken(f"no batch was attempted again: {told}")
    check(output, alone)
    os.remove(os.path.join(batches, "bad"))
    add(batches, "late", 1_000, 2)
    for target in output, os.path.join(root, "elsewhere"):
        told = call(environment, root, 0, batches, target)
        lines = [line for line in told.splitlines() if ": published" in line]
        new = [line for line in lines if ": published: " in line]
        if (len(lines), len(new)) != (BATCHES + 1, 1 if target == output else BATCHES + 1):
            raise Broken(f"another call skipped work: {told}")
    for arguments in ["missing", output], [batches]:
        call(environment, root, 64, *arguments)
    call({**environment, "SHARDS": "no"}, root, 64, batches, output)
    print(f"parallel: {BATCHES} batches in {SHARDS} shards, one killed: the same as one run")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="parallel-") as scratch:
        sys.exit(run(scratch))
