#!/usr/bin/python3
"""Sends a batch to a worker: send_batch.py FILE http://HOST:PORT/v1/batches/NAME, with the token in INGEST_TOKEN."""
import os
import sys
import time
import urllib.error
import urllib.request


def send(path, url, token=None, attempts=50):
    """Returns the answer: 201 for a new batch, 200 for one that was taken before."""
    for _ in range(attempts):
        with open(path, "rb") as body:
            request = urllib.request.Request(url, data=body, method="PUT")
            request.add_header("Content-Type", "application/octet-stream")
            request.add_header("Content-Length", str(os.path.getsize(path)))
            if token:
                request.add_header("Authorization", "Bearer " + token)
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                if error.code not in (408, 429, 503):
                    raise SystemExit(f"{error.code}: {error.read().decode()}")
                time.sleep(int(error.headers.get("Retry-After", 1)))
            except (OSError, urllib.error.URLError):
                time.sleep(1)  # The connection broke: the same request again does no harm.
    raise SystemExit("no answer")


if __name__ == "__main__":
    print(*send(sys.argv[1], sys.argv[2], os.environ.get("INGEST_TOKEN")))
