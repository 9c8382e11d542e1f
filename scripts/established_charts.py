#!/usr/bin/env python3
"""Writes facts about the released versions of the established chart to tests/corpus/charts/established.

    scripts/established_charts.py REPOSITORY

REPOSITORY is a checkout of cloud-provider-azure, or its git directory. Versions that do not differ in what follows share a
file, which the first of them names:

* values: each key with its default, and the examples that comments of its values.yaml show;
* objects: kind, namespace and name of each object that the chart renders with its defaults, and of workloads the selector, the
  labels of pods, commands, and the names of flags.

No text of a template is kept. Needs helm (scripts/helm.sh), git and PyYAML; run by hand when a version is released.
"""

import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests/corpus/charts/established"
# A chart chooses its image by the version of Kubernetes. A tag of our own works for all.
RENDER = ["--set", "cloudControllerManager.imageTag=v0", "--set", "cloudNodeManager.imageTag=v0"]


def output(*command, **kwargs):
    return subprocess.run(command, check=True, capture_output=True, **kwargs).stdout


def packages(repository):
    """Each released package: its version and bytes."""
    git = ["git", "-C", repository]
    names = output(*git, "ls-tree", "--name-only", "HEAD:helm/repo", text=True).split()
    for name in names:
        if match := re.fullmatch(r"cloud-provider-azure-(.+)\.tgz", name):
            yield match[1], output(*git, "show", f"HEAD:helm/repo/{name}")


def by_number(version):
    return [int(number) for number in re.findall(r"\d+", version)]


def leaves(values, path=""):
    """Keys of nested values, joined by dots. Lists and empty maps are values."""
    if isinstance(values, dict) and values and path.split(".")[-1] not in ("nodeSelector", "updateStrategy"):
        for key, value in values.items():
            yield from leaves(value, f"{path}.{key}" if path else key)
    else:
        yield path, values


def examples(text):
    """The keys that values.yaml only shows in a comment, with the value there."""
    section = ""
    for line in text.splitlines():
        if match := re.match(r"(\w+):", line):
            section = match[1]
        elif match := re.match(r"  # ?(\w+): (.+)$", line):
            yield f"{section}.{match[1]}", yaml.safe_load(match[2])


def facts(document):
    """What must not change about an object, and what a reader of it depends on."""
    metadata = document["metadata"]
    found = {"kind": document["kind"], "name": metadata["name"]}
    if "namespace" in metadata:
        found["namespace"] = metadata["namespace"]
    if "labels" in metadata:
        found["labels"] = metadata["labels"]
    if "roleRef" in document:
        found["roleRef"] = document["roleRef"]["name"]
    if template := document.get("spec", {}).get("template"):
        found["selector"] = document["spec"]["selector"]["matchLabels"]
        found["podLabels"] = template["metadata"]["labels"]
        found["serviceAccount"] = template["spec"]["serviceAccountName"]
        found["containers"] = {
            one["name"]: {
                "command": one["command"],
                "flags": sorted(arg.split("=")[0] for arg in one.get("args", []) if arg.startswith("--")),
            }
            for one in template["spec"]["containers"]
        }
    return found


def rendered(helm, chart):
    text = output(helm, "template", "release", str(chart), *RENDER, text=True)
    documents = [document for document in yaml.safe_load_all(text) if document]
    return sorted((facts(document) for document in documents), key=lambda one: (one["kind"], one["name"]))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    helm = output(ROOT / "scripts/helm.sh", text=True).strip()
    CORPUS.mkdir(parents=True, exist_ok=True)
    for stale in CORPUS.glob("*.json"):
        stale.unlink()
    groups = []
    for version, package in sorted(packages(sys.argv[1]), key=lambda one: by_number(one[0])):
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "chart.tgz"
            archive.write_bytes(package)
            with tarfile.open(archive) as opened:
                opened.extractall(folder, filter="data")
            chart = Path(folder) / "cloud-provider-azure"
            text = (chart / "values.yaml").read_text()
            known = {
                "values": dict(leaves(yaml.safe_load(text))),
                "examples": {key: value for key, value in examples(text) if not key.endswith(".imageTag")},
                "objects": rendered(helm, chart),
            }
        for group in groups:
            if group["facts"] == known:
                group["versions"].append(version)
                break
        else:
            groups.append({"versions": [version], "facts": known})
    for group in groups:
        path = CORPUS / f"{group['versions'][0]}.json"
        path.write_text(json.dumps({"versions": group["versions"], **group["facts"]}, indent=1, ensure_ascii=False) + "\n")
        print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
