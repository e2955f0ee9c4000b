#!/usr/bin/python3
"""Unpacks the image of one architecture from an OCI image layout.

Usage: unpack_image.py LAYOUT ARCHITECTURE WORK

WORK/architectures has a line for each image. The image's files go to WORK/root, its user and program to WORK/user and
WORK/entry; these are missing when no image is for the architecture.
"""
import json
import subprocess
import sys
from pathlib import Path

INDEX = "application/vnd.oci.image.index.v1+json"


def require_sbom(root, version):
    """Checks the bill of materials that is attested for the image: docs/security.md."""
    sbom = json.loads((root / "usr/share/doc/encoder-worker/encoder-worker.spdx.json").read_text())
    if ("encoder-worker", version) not in [(one["name"], one["versionInfo"]) for one in sbom["packages"]]:
        raise SystemExit("the SBOM is not that of the image")


def main():
    layout, wanted, work = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])

    def place(part):
        path = layout / "blobs" / part["digest"].replace(":", "/")
        if path.stat().st_size != part["size"]:
            raise SystemExit(f"{path}: another size than its descriptor says")
        return path

    def read(part):
        return json.loads(place(part).read_text())

    def images(entries):
        for entry in entries:
            yield from images(read(entry)["manifests"]) if entry["mediaType"] == INDEX else [entry]

    top = json.loads((layout / "index.json").read_text())["manifests"]
    if len(top) != 1 or not top[0]["annotations"]["org.opencontainers.image.ref.name"]:
        raise SystemExit("index.json: not one image or index with a name")
    found = list(images(top))
    named = {part["digest"] for part in [*top, *found]}
    for entry in found:
        manifest = read(entry)
        named |= {part["digest"] for part in [manifest["config"], *manifest["layers"]]}
        config = read(manifest["config"])
        if config["architecture"] != entry["platform"]["architecture"]:
            raise SystemExit(f"{entry['digest']}: for {config['architecture']}, and its descriptor says otherwise")
        if config["architecture"] == wanted:
            for layer in manifest["layers"]:
                (work / "root").mkdir(exist_ok=True)
                subprocess.run(["tar", "-xzpf", place(layer), "-C", work / "root", "--numeric-owner"], check=True)
            require_sbom(work / "root", config["config"]["Labels"]["org.opencontainers.image.version"])
            (work / "user").write_text(config["config"]["User"])
            (work / "entry").write_text(" ".join(config["config"]["Entrypoint"]))
    stored = {"sha256:" + path.name for path in (layout / "blobs/sha256").iterdir()}
    if stored != named:
        raise SystemExit(f"files that no image names, or missing ones: {sorted(stored ^ named)}")
    (work / "architectures").write_text("".join(entry["platform"]["architecture"] + "\n" for entry in found))


if __name__ == "__main__":
    main()
