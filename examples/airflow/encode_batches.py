"""A directory of batches in eight shards, then once more as a whole. For Airflow 3; the directories are seen by all its workers."""
import subprocess
from datetime import timedelta

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

BATCHES, OUTPUT = "/srv/replay/batches", "/srv/replay/output"
SHARDS = 8
# 64: the call is wrong. 65: a batch was refused, all others are done. Again would be the same.
FINAL = (64, 65)


def run(*options):
    """Calls encoder-worker; fails for good where it has refused something, and for another try where the machine failed."""
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

    # Published batches are recognised: this encodes what is missing, if anything is, and ends as the whole has ended.
    @task(trigger_rule="all_done")
    def finish():
        run()

    encode.expand(shard=list(range(SHARDS))) >> finish()


encode_batches()
