#!/usr/bin/python3
"""Prints the software bill of materials of the package, SPDX 2.3 in JSON. Usage: sbom.py VERSION DEPENDS TIME"""
import hashlib
import json
import re
import subprocess
import sys
import time

LICENCES = {"swift-argument-parser": "Apache-2.0", "swift-log": "Apache-2.0", "swift": "Apache-2.0 WITH Swift-exception"}


def package(name, version, licence, location="NOASSERTION"):
    return {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name), "name": name, "versionInfo": version,
            "licenseConcluded": licence, "licenseDeclared": licence, "downloadLocation": location, "filesAnalyzed": False,
            "copyrightText": "NOASSERTION"}


def main():
    version, depends, seconds = sys.argv[1:]
    program = package("encoder-worker", version, "Apache-2.0")
    linked = [package(pin["identity"], pin["state"].get("version", pin["state"]["revision"]), LICENCES.get(pin["identity"], "NOASSERTION"),
                      "git+" + pin["location"] + "@" + pin["state"]["revision"])
              for pin in json.load(open("Package.resolved"))["pins"]]
    swift = subprocess.run(["swift", "--version"], capture_output=True, text=True).stdout
    linked.append(package("swift", re.search(r"Swift version (\S+)", swift)[1], LICENCES["swift"], "https://www.swift.org"))
    needed = [package(name, wanted or "any", "NOASSERTION", "https://www.debian.org")
              for name, wanted in re.findall(r"([a-z0-9.+-]+)(?: \(([^)]*)\))?(?:,|$)", depends)]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", program)]
    relations += [(program["SPDXID"], "STATIC_LINK", other) for other in linked]
    relations += [(program["SPDXID"], "DYNAMIC_LINK", other) for other in needed]
    packages = [program, *linked, *needed]
    name = f"encoder-worker-{version}"
    digest = hashlib.sha256(json.dumps(packages, sort_keys=True).encode()).hexdigest()
    print(json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
        "documentNamespace": f"urn:sha256:{digest}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(seconds))),
                         "creators": ["Tool: packaging/sbom.py"]},
        "packages": packages,
        "relationships": [{"spdxElementId": left, "relationshipType": kind, "relatedSpdxElement": right["SPDXID"]}
                          for left, kind, right in relations],
    }, indent=1, sort_keys=True))


main()
