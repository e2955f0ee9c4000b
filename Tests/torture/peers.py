"""A Redis and an S3 store for restarts.py: redis-server, and the moto of Tests/store/serve.py."""
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
import xml.etree.ElementTree

import spool as spools

BUCKET = "replay"
MODULES = os.path.join(spools.ROOT, ".build", "moto")
SERVE = os.path.join(spools.ROOT, "Tests", "store", "serve.py")
LOCK, used_ports = threading.Lock(), set()


def missing():
    """Returns the reason why there are no peers on this machine; None if there can be."""
    if not shutil.which("redis-server"):
        return "redis-server is not there"
    script = "import sys; sys.path.insert(0, sys.argv[1]); import flask_cors, moto"
    if subprocess.run([sys.executable, "-c", script, MODULES], capture_output=True).returncode:
        return "moto is not there; scripts/setup test installs it"
    return None


def free_port():
    """Returns a port below the ephemeral ones, so that a server which is started again finds it free."""
    while True:
        port = random.randrange(20_000, 32_000)
        with LOCK, socket.socket() as probe:
            if port not in used_ports and probe.connect_ex(("127.0.0.1", port)):
                used_ports.add(port)
                return port


class Peers:
    """A queue and a store for all runs. Each run has a stream and a prefix of its own."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="torture-")
        self.redis_port = free_port()
        self.redis = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "redis-server", "--port", str(self.redis_port), "--bind", "127.0.0.1", "--dir",
             self.directory.name, "--save", "", "--appendonly", "yes", "--appendfsync", "everysec"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.store = subprocess.Popen([sys.executable, "-B", SERVE, BUCKET], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.endpoint = f"http://127.0.0.1:{int(self.store.stdout.readline())}"
        self.client = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self.wait_for_redis()

    def wait_for_redis(self):
        end = time.monotonic() + spools.HANG_S
        while time.monotonic() < end and self.redis.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.redis_port), timeout=10).close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("restarts: redis-server does not start")

    def stop(self):
        for process in (self.redis, self.store):
            process.kill()
            process.communicate()
        self.directory.cleanup()

    def options(self, name):
        """Returns the options of a worker for the run of this name."""
        return ["--queue", f"redis://127.0.0.1:{self.redis_port}?stream={name}", "--store", f"s3://{BUCKET}/{name}"]

    @property
    def environment(self):
        return {"AWS_ENDPOINT_URL_S3": self.endpoint, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
                "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "AWS_SESSION_TOKEN": "",
                "no_proxy": "127.0.0.1"}

    def download(self, name, directory):
        """Writes all objects of a run into a directory."""
        for key in self.keys(name + "/"):
            path = os.path.join(directory, key.removeprefix(name + "/"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with self.client.open(f"{self.endpoint}/open/{BUCKET}/{urllib.parse.quote(key)}") as answer:
                spools.write(path, answer.read())

    def keys(self, prefix):
        found, page = [], True
        while page:
            query = {"list-type": 2, "prefix": prefix, "start-after": found[-1] if found else ""}
            with self.client.open(f"{self.endpoint}/open/{BUCKET}?{urllib.parse.urlencode(query)}") as answer:
                page = [key.text for key in xml.etree.ElementTree.parse(answer).iterfind(".//{*}Key")]
            found += page
        return found
