"""Runs the DAG in a local Airflow: checks how Airflow parses it, then runs it over batches of which one is bad. The
task of the bad batch fails at once. The others succeed, and the output equals that of one run."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from batches import EXAMPLES, Broken, check, expected, fill, worker  # noqa: E402

BATCHES = 20


def main(root):
    folder = os.path.join(EXAMPLES, "airflow")
    os.environ.update(AIRFLOW_HOME=root, AIRFLOW__CORE__LOAD_EXAMPLES="False", AIRFLOW__CORE__DAGS_FOLDER=folder,
                      AIRFLOW__LOGGING__LOGGING_LEVEL="ERROR", PATH=os.path.dirname(worker()) + ":" + os.environ["PATH"])
    from airflow.dag_processing.dagbag import DagBag
    from airflow.utils.db import initdb

    initdb()
    bag = DagBag(folder, safe_mode=False)
    if bag.import_errors or list(bag.dags) != ["encode_batches"]:
        raise Broken(f"{bag.import_errors or list(bag.dags)}")
    dag = bag.dags["encode_batches"]
    batches, output = os.path.join(root, "batches"), os.path.join(root, "output")
    fill(batches, BATCHES)
    alone = expected(batches, os.path.join(root, "alone"))
    with open(os.path.join(batches, "bad"), "wb") as file:
        file.write(b"what is this")
    dag.get_task("finish").python_callable.__globals__.update(BATCHES=batches, OUTPUT=output)
    run = dag.test()
    ends = {(task.task_id, task.map_index): (task.state, task.try_number) for task in run.get_task_instances()}
    # sha256sum of "bad" begins with 2f05d4b6.
    meant = {("encode", shard): ("failed" if shard == 0x2f05d4b6 % 8 else "success", 1) for shard in range(8)}
    if ends != meant | {("finish", -1): ("failed", 1)} or run.state != "failed":
        raise Broken(f"{run.state}: {ends}")
    check(output, alone)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="airflow-") as scratch:
        main(scratch)
    print(f"encode_batches: run by Airflow, {BATCHES} batches and a bad one: the same as one run")
