"""Both ways of a batch to the worker in soak.py: a spool, and a queue and a store (those of remote.py)."""

import hashlib
import http.client
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile
from pathlib import Path

import remote


class Spool:
    """Batches are directories of hard links; the rename into incoming/ releases one."""

    title = "a spool"

    def __init__(self, place, films):
        self.place, self.films = place, films
        self.tmp, self.incoming, self.output = (str(place / name) for name in ("tmp", "incoming", "output"))
        for path in (self.tmp, self.incoming):
            os.makedirs(path)
        self.options, self.environment, self.servers = ["--spool", str(place)], {}, {}

    def prepare(self, batch):
        path = f"{self.tmp}/{batch.name}"
        os.mkdir(path)
        film = self.films[batch.film]
        for time, capture in batch.frames():
            os.link(film[capture % len(film)], f"{path}/{time}.jpg")
        if batch.isFinal:
            Path(path, "batch.json").write_text('{"version":1,"final":true}')

    def release(self, batch):
        os.rename(f"{self.tmp}/{batch.name}", f"{self.incoming}/{batch.name}")

    def index(self, session):
        return json.loads(Path(self.output, session, "session.json").read_text())

    def removals(self, session, batches):
        return [lambda: shutil.rmtree(f"{self.output}/{session}")]

    def copy(self, session, target):
        shutil.copytree(f"{self.output}/{session}", target)

    def leftovers(self):
        """Returns batches that are neither published nor waiting in tmp/, and files of unfinished publications."""
        places = ("incoming/*", "quarantine/*", "trash/*", "claimed/*/*/*", "output/.staging/*/*", "output/.behind/*")
        return [str(path) for place in places for path in self.place.glob(place)]

    def close(self):
        shutil.rmtree(self.place)


class Store:
    """Batches are tars in a store; the entry in the queue's stream releases one."""

    title = "a queue and a store"

    def __init__(self, place, films):
        place.mkdir()
        self.place = place
        self.pictures = {path: Path(path).read_bytes() for film in films for path in film}
        self.films = films
        self.running = remote.Servers(remote.PLAIN, place, None, log="/dev/null")
        self.options = ["--queue", f"unix://{self.running.socket}", "--store", f"s3://{remote.BUCKET}/run"]
        self.environment = {**remote.ENVIRONMENT, "AWS_ENDPOINT_URL": self.running.endpoint, "TMPDIR": str(place)}
        self.servers = {"Redis": self.running.redis.pid, "the store": self.running.store.pid}
        self.http = http.client.HTTPConnection(self.running.endpoint.removeprefix("http://"))
        self.redis = socket.socket(socket.AF_UNIX)
        self.redis.connect(str(self.running.socket))
        self.replies = self.redis.makefile("rb")
        self.tags = {}

    def request(self, method, key, body=None):
        self.http.request(method, f"/{remote.BUCKET}/run/{key}", body)
        answer = self.http.getresponse()
        content = answer.read()
        if answer.status // 100 != 2:
            raise OSError(f"{method} {key}: {answer.status}")
        return content

    def prepare(self, batch):
        text = io.BytesIO()
        with tarfile.open(fileobj=text, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            film = self.films[batch.film]
            files = [(f"{time}.jpg", self.pictures[film[capture % len(film)]]) for time, capture in batch.frames()]
            for name, content in files + [("batch.json", b'{"version":1,"final":true}')] * batch.isFinal:
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
        self.request("PUT", f"incoming/{batch.name}", text.getvalue())
        self.tags[batch.name] = hashlib.md5(text.getvalue()).hexdigest()

    def release(self, batch):
        self.redis.sendall(f"XADD encoder-worker * batch {batch.name}\r\n".encode())
        # The length of the entry's ID, and the ID.
        if not self.replies.readline().startswith(b"$"):
            raise OSError("XADD is refused")
        self.replies.readline()

    def index(self, session):
        return json.loads(self.request("GET", f"output/{session}/session.json"))

    def removals(self, session, batches):
        files = [part[0] for outcome in batches.values() for part in outcome[1:]]
        files += [file.replace(".mp4", ".json") for file in files] + ["session.json", "session.ffconcat", "session-end.json"]
        keys = [f"output/{session}/{file}" for file in files] + [f"index/{session}/head.json"]
        keys += [f"receipts/{name}/{self.tags.pop(name)}.json" for name in batches]
        return [lambda key=key: self.request("DELETE", key) for key in keys]

    def copy(self, session, target):
        target.mkdir(parents=True)
        for key in self.running.keys(f"output/{session}/"):
            (target / key.rsplit("/", 1)[1]).write_bytes(self.request("GET", key))

    def leftovers(self):
        """Returns batches that are neither published nor prepared, and entries of the queue."""
        listed = subprocess.run(["redis-cli", "-s", self.running.socket, "XRANGE", "encoder-worker", "-", "+"],
                                check=True, capture_output=True, text=True).stdout.split()
        for prefix in ("incoming/", "quarantine/", "behind/"):
            listed += self.running.keys(prefix)
        return listed

    def close(self):
        self.running.__exit__()
        shutil.rmtree(self.place)
