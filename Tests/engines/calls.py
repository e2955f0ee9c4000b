"""Runs every call of encoder-worker in the examples as the engine would. All tasks together must write the output of
one run, and no task may repeat another's work. Then checks the engine's action for each exit status of a task that
fails.
"""
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import types

import yaml

from batches import EXAMPLES, Broken, check, expected, fill, worker

BATCHES, SHARDS = 10, 8


class Fatal(Exception):
    pass


class Again(Exception):
    pass


def path(*names):
    return os.path.join(EXAMPLES, *names)


def text(*names):
    with open(path(*names)) as file:
        return file.read()


def call(command, batches, output, **variables):
    """Runs a command as an engine would. Returns its exit status and its output."""
    environment = {**os.environ, "PATH": os.path.dirname(worker()) + ":" + os.environ["PATH"], "BATCHES": batches,
                   "OUTPUT": output, **variables}
    result = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            cwd=os.path.dirname(output))
    return result.returncode, result.stdout, result.stderr


def placed(word, batches, output):
    return word.replace("/replay/batches", batches).replace("/replay/output", output)


def slurm(batches, output, first=0):
    """Runs an array with indices from 0, or from `first`."""
    if f"#SBATCH --array=0-{SHARDS - 1}\n" not in text("slurm", "encode.sbatch"):
        raise Broken("array and shards differ")
    for task in range(first, first + SHARDS):
        yield call(["sh", path("slurm", "encode.sbatch")], batches, output, SLURM_ARRAY_TASK_ID=str(task),
                   SLURM_ARRAY_TASK_MIN=str(first), SLURM_ARRAY_TASK_COUNT=str(SHARDS), SLURM_CPUS_PER_TASK="1",
                   SLURM_JOB_ID="1", SLURM_RESTART_COUNT="3")


def slurm_from_one(batches, output):
    return slurm(batches, output, first=1)


def kubernetes(batches, output):
    spec = yaml.safe_load(text("kubernetes", "encode.yaml"))["spec"]
    container = spec["template"]["spec"]["containers"][0]
    if spec["completions"] != SHARDS:
        raise Broken("completions and shards differ")
    for index in range(SHARDS):
        words = [placed(word, batches, output) for word in container["command"] + container["args"]]
        words = [word.replace("$(JOB_COMPLETION_INDEX)", str(index)) for word in words]
        yield call([worker()] + words[1:], batches, output)


def aws_batch(batches, output):
    words = json.loads(text("aws-batch", "job-definition.json"))["containerProperties"]["command"]
    for index in range(json.loads(text("aws-batch", "job.json"))["arrayProperties"]["size"]):
        yield call([placed(word, batches, output) for word in words], batches, output,
                   AWS_BATCH_JOB_ARRAY_INDEX=str(index), AWS_BATCH_JOB_ARRAY_SIZE=str(SHARDS))


def nextflow(batches, output):
    script = re.search(r'"""\n(.*?)"""', text("nextflow", "main.nf"), re.DOTALL)[1].replace("\\\\\n", "\\\n")
    values = {"params.batches": batches, "params.output": output, "params.shards": str(SHARDS), "task.cpus": "1"}
    for shard in range(SHARDS):
        filled = re.sub(r"\$\{([a-z.]+)\}", lambda found: {**values, "shard": str(shard)}[found[1]], script)
        yield call(["bash", "-ue", "-c", filled], batches, output)


def dag(batches, output):
    """Imports the DAG's module with decorators that return the plain functions."""
    tasks = {}

    class Task:
        def __init__(self, function):
            tasks[function.__name__] = function

        def expand(self, shard):
            tasks["shards"] = shard
            return self

        def __call__(self):
            return self

        def __rshift__(self, other):
            return other

    def bare(make):
        return lambda function=None, **_: make(function) if function else make

    sdk, exceptions = types.ModuleType("airflow.sdk"), types.ModuleType("airflow.sdk.exceptions")
    sdk.task, sdk.dag = bare(Task), bare(lambda function: function)
    exceptions.AirflowException, exceptions.AirflowFailException = Again, Fatal
    sys.modules.update({"airflow": types.ModuleType("airflow"), "airflow.sdk": sdk, "airflow.sdk.exceptions": exceptions})
    spec = importlib.util.spec_from_file_location("encode_batches", path("airflow", "encode_batches.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.BATCHES, module.OUTPUT = batches, output
    return module, tasks


def airflow(batches, output):
    """Runs each function of the DAG in a separate process, to capture the output of its encoder."""
    _, tasks = dag(batches, output)
    program = f"""
import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
import calls
_, tasks = calls.dag({batches!r}, {output!r})
"""
    for shard in tasks["shards"]:
        yield call([sys.executable, "-c", program + f"tasks['encode']({shard})"], batches, output)
    status, told, said = call([sys.executable, "-c", program + "tasks['finish']()"], batches, output)
    if status != 0 or told.count(": published before: ") != BATCHES:
        raise Broken(f"finish: {status}: {told}{said}")


def check_calls(root, engine, batches, alone):
    output = os.path.join(root, engine.__name__, "output")
    os.mkdir(os.path.dirname(output))
    published = 0
    for status, told, said in engine(batches, output):
        if status != 0:
            raise Broken(f"{engine.__name__}: {status}: {said}")
        published += told.count(": published: ")
    if published != BATCHES:
        raise Broken(f"{engine.__name__}: {published} batches published, and not {BATCHES}")
    check(output, alone)


def check_rules(root):
    """Checks the engines' actions for 64 and 65, and for all other statuses."""
    rules = yaml.safe_load(text("kubernetes", "encode.yaml"))["spec"]["podFailurePolicy"]["rules"]
    actions = {code: rule["action"] for rule in rules for code in rule.get("onExitCodes", {}).get("values", [])}
    if actions != {64: "FailJob", 65: "FailIndex"}:
        raise Broken(f"kubernetes: {actions}")
    rules = json.loads(text("aws-batch", "job-definition.json"))["retryStrategy"]["evaluateOnExit"]
    if [(rule.get("onExitCode"), rule["action"]) for rule in rules] != [("64", "EXIT"), ("65", "EXIT"), (None, "RETRY")]:
        raise Broken(f"aws-batch: {rules}")
    programs = os.path.join(root, "programs")
    os.mkdir(programs)
    for status, again in ((0, False), (64, False), (65, False), (74, True), (75, True), (137, True)):
        for name, script in (("encoder-worker", f"exit {status}"), ("scontrol", f'echo "$@" >> {root}/scontrol'),
                             ("sleep", "exit 0")):
            with open(os.path.join(programs, name), "w") as file:
                os.fchmod(file.fileno(), 0o755)
                file.write(f"#!/bin/sh\n{script}\n")
        check_slurm(root, programs, status, again)
        check_airflow(programs, status, again)


def check_slurm(root, programs, status, again):
    for restarts in (0, 3):
        ended, _, _ = call(["sh", path("slurm", "encode.sbatch")], "", os.path.join(root, "output"),
                           PATH=programs + ":" + os.environ["PATH"], SLURM_ARRAY_TASK_ID="3", SLURM_ARRAY_TASK_MIN="0",
                           SLURM_ARRAY_TASK_COUNT="8", SLURM_CPUS_PER_TASK="1", SLURM_JOB_ID="17",
                           SLURM_RESTART_COUNT=str(restarts))
        asked = os.path.exists(f"{root}/scontrol")
        if (ended, asked) != (status, again and restarts < 3):
            raise Broken(f"slurm: {status} after {restarts} restarts: ended {ended}, put back: {asked}")
        if asked:
            os.remove(f"{root}/scontrol")


def check_airflow(programs, status, again):
    module, tasks = dag("", "")
    before, os.environ["PATH"] = os.environ["PATH"], programs + ":" + os.environ["PATH"]
    try:
        tasks["encode"](0)
        raised = None
    except (Fatal, Again) as error:
        raised = type(error)
    finally:
        os.environ["PATH"] = before
    if raised != (Again if again else Fatal if status else None):
        raise Broken(f"airflow: {status}: {raised}")


def main():
    # The engines split command lines at blanks, which TMPDIR may have.
    with tempfile.TemporaryDirectory(prefix="calls-", dir="/tmp") as root:
        batches = os.path.join(root, "batches")
        fill(batches, BATCHES)
        alone = expected(batches, os.path.join(root, "alone"))
        for engine in (slurm, slurm_from_one, kubernetes, aws_batch, nextflow, airflow):
            check_calls(root, engine, batches, alone)
        check_rules(root)
    print(f"calls: {BATCHES} batches in {SHARDS} shards, six ways: the same as one run")


if __name__ == "__main__":
    main()
