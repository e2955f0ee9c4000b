"""Validates the manifests for Kubernetes: its own kinds against its schemas, of the oldest release that the examples
name and of the newest known; the kinds of KEDA and of the Prometheus operator against their resource definitions.

    kubernetes.py DEFINITIONS MANIFEST...

An unknown field is an error. A kind without a definition is named, and not checked. Rules in CEL (x-kubernetes-validations) are not checked.
"""
import copy
import pathlib
import sys

import jsonschema
import kubernetes_validate
import yaml

OLDEST = "1.33"
# The groups of kinds that are not Kubernetes' own.
CUSTOM = ("keda.sh", "monitoring.coreos.com")


def strict(schema):
    """Returns a structural schema as JSON Schema, which refuses unknown fields."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    # The names in `properties` are fields, and no keywords.
    made = {key: {name: strict(field) for name, field in value.items()} if key == "properties" else strict(value)
            for key, value in schema.items() if key not in ("default", "description", "enum")}
    if "enum" in schema:
        made["enum"] = schema["enum"]
    if "properties" in made and not made.get("x-kubernetes-preserve-unknown-fields"):
        made.setdefault("additionalProperties", False)
    if made.pop("nullable", False):
        made = {"anyOf": [{"type": "null"}, made]}
    return made


def definitions(folder):
    """Returns a validator for each version of each kind that is defined in the folder."""
    found = {}
    for path in sorted(pathlib.Path(folder).glob("*.yaml")):
        spec = yaml.safe_load(path.read_text())["spec"]
        for version in spec["versions"]:
            schema = strict(version["schema"]["openAPIV3Schema"])
            schema["properties"]["metadata"] = {"type": "object", "required": ["name"]}
            found[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = jsonschema.Draft7Validator(schema)
    return found


def check(document, custom):
    kind = document["apiVersion"], document["kind"]
    if kind in custom:
        custom[kind].validate(document)
        wrong = copy.deepcopy(document)
        wrong["spec"]["mistake"] = 1
        if custom[kind].is_valid(wrong):
            sys.exit(f"{kind}: the schema takes unknown fields")
    elif any(kind[0].startswith(group + "/") for group in CUSTOM):
        return "not checked: its definition is missing"
    else:
        for version in (OLDEST, kubernetes_validate.latest_version()):
            kubernetes_validate.validate(document, version, strict=True)
    return "matches its schema"


def main():
    custom = definitions(sys.argv[1])
    for path in sys.argv[2:]:
        for document in yaml.safe_load_all(pathlib.Path(path).read_text()):
            name = f"{path}: {document['kind']} {document['metadata']['name']}"
            try:
                print(f"{name}: {check(document, custom)}")
            except jsonschema.ValidationError as error:
                sys.exit(f"{name}: {'.'.join(map(str, error.absolute_path))}: {error.message}")


if __name__ == "__main__":
    main()
