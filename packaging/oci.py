#!/usr/bin/python3
"""Packs a root directory into an OCI image archive (OCI image layout 1.0).

Usage: oci.py ROOT ARCHIVE VERSION ARCHITECTURE TIME [REVISION]
"""
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time

INDEX = "application/vnd.oci.image.index.v1+json"


def main():
    root, archive, version, architecture, seconds, *revision = sys.argv[1:]
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(seconds)))
    labels = {"org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0"}
    if any(revision):
        labels["org.opencontainers.image.revision"] = revision[0]
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(archive))) as work:
        layer, packed = f"{work}/layer.tar", f"{work}/layer.tar.gz"
        subprocess.run(["tar", "--create", "--file", layer, "--directory", root, "--sort=name", f"--mtime=@{seconds}",
                        "--numeric-owner", "--one-file-system", "."], check=True)
        difference = digest(layer)
        with open(layer, "rb") as source, open(packed, "wb") as target:
            with gzip.GzipFile(fileobj=target, mode="wb", mtime=0, filename="") as stream:
                while part := source.read(1 << 20):
                    stream.write(part)
        config = json.dumps({
            "created": created, "architecture": architecture, "os": "linux",
            "config": {
                "User": "10001", "Entrypoint": ["/usr/bin/encoder-worker"], "StopSignal": "SIGTERM",
                "Env": ["PATH=/usr/bin:/bin", "ENCODER_WORKER_SPOOL=/spool"], "Volumes": {"/spool": {}}, "Labels": labels,
            },
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + difference]},
            "history": [{"created": created, "created_by": "packaging/image"}],
        }).encode()
        manifest = json.dumps({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("application/vnd.oci.image.config.v1+json", config),
            "layers": [{
                "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": "sha256:" + digest(packed),
                "size": os.path.getsize(packed)}],
        }).encode()
        platform = {"architecture": architecture, "os": "linux"}
        entry = descriptor("application/vnd.oci.image.manifest.v1+json", manifest) | {"platform": platform}
        with open(packed, "rb") as stream:
            write(archive, int(seconds), named(entry, version), {
                blob(hashlib.sha256(config).hexdigest()): (io.BytesIO(config), len(config)),
                blob(hashlib.sha256(manifest).hexdigest()): (io.BytesIO(manifest), len(manifest)),
                blob(digest(packed)): (stream, os.path.getsize(packed))})


def named(entry, version):
    """Returns the archive's index, with one image or index under the name that `podman load` gives it."""
    return index([entry | {"annotations": {"org.opencontainers.image.ref.name": f"encoder-worker:{version}"}}])


def index(entries):
    return json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()


def write(archive, seconds, top, blobs):
    """Writes an archive; `blobs` has a stream and a size for each path. All bytes depend on the arguments alone."""
    layout = b'{"imageLayoutVersion":"1.0.0"}'
    first = {"oci-layout": (io.BytesIO(layout), len(layout)), "index.json": (io.BytesIO(top), len(top))}
    with tarfile.open(archive + ".part", "w") as tar:
        for name, (stream, size) in (first | blobs).items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = size, seconds
            tar.addfile(entry, stream)
    os.rename(archive + ".part", archive)


def blob(name):
    return "blobs/sha256/" + name


def descriptor(kind, content):
    return {"mediaType": kind, "digest": "sha256:" + hashlib.sha256(content).hexdigest(), "size": len(content)}


def digest(path):
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


if __name__ == "__main__":
    main()
