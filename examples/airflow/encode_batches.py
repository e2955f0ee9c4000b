"""Encodes a directory of batches in eight shards, then as a whole. For Airflow 3; all workers mount the directories."""
import subprocess
from datetime import timedelta

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

BATCHES, OUTPUT = "/srv/replay/batches", "/srv/replay/output"
SHARDS = 8
# 64: wrong usage. 65: a batch was refused, all others are done. A retry would end the same.
FINAL = (64, 65)


def run(*options):
    """Calls encoder-worker. Raises a permanent failure after 64 or 65, and a retryable one after a machine failure."""
    status = subprocess.run(
        ["encoder-worker", "encode", "--batches", BATCHES, "--output", OUTPUT, "--jobs", "2", *options]).returncode
    if status in FINAL:
        raise AirflowFailException(f"exit status {status}: see the lines above")
    if status != 0:
        raise AirflowException(f"exit status {status}: nothing is lost, it is tried again")


@dag(schedule="@hourly", catchup=False, max_active_runs=1,
     default_args={"retries": 3, "retry_delay": timedelta(minutes=1), "retry_exponential_backoff": True})
def encode_batches():
    @task
    def encode(shard):
        run("--shard", f"{shard}/{SHARDS}")

    # The program skips published batches: this task encodes missing ones, and ends with the status of the whole run.
    @task(trigger_rule="all_done")
    def finish():
        run()

    encode.expand(shard=list(range(SHARDS))) >> finish()


encode_batches()
