#!/usr/bin/env python3
"""Writes facts about the released versions of an established chart to tests/corpus/charts/established/CHART.

    scripts/established_charts.py CHART REPOSITORY

CHART is cloud-provider-azure, azuredisk-csi-driver or azurefile-csi-driver, REPOSITORY a checkout of the project that releases it, or its git directory.
Versions that do not differ in what follows share a file, which the first of them names:

* values: each key with its default, and the examples that comments of its values.yaml show;
* objects: kind, namespace and name of each object that the chart renders, and of workloads the selector, the labels of pods,
  commands, and the names of flags.

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
ESTABLISHED = ROOT / "tests/corpus/charts/established"
# What differs between the charts: where a repository has the packages, which versions are compared, arguments of helm, maps that are
# values of their own, and the depth of keys in comments.
CHARTS = {
    "cloud-provider-azure": {
        "packages": r"helm/repo/cloud-provider-azure-(.+)\.tgz",
        "since": [0],
        # This chart chooses its image by the version of Kubernetes. A tag of our own works for all.
        "render": ["--set", "cloudControllerManager.imageTag=v0", "--set", "cloudNodeManager.imageTag=v0"],
        "whole": ["nodeSelector", "updateStrategy"],
        "examples": True,
    },
    "azuredisk-csi-driver": {
        "packages": r"charts/v[0-9.]+/azuredisk-csi-driver-v?([0-9.]+)\.tgz",
        "since": [1, 30, 0],
        "render": ["--namespace", "kube-system", "--set", "snapshot.enabled=true"],
        "whole": ["nodeAffinity", "resources"],
        "examples": False,
    },
    "azurefile-csi-driver": {
        "packages": r"charts/v[0-9.]+/azurefile-csi-driver-v?([0-9.]+)\.tgz",
        "since": [1, 30, 0],
        "render": ["--namespace", "kube-system", "--set", "snapshot.enabled=true,node.enableKataCCMount=true"],
        "whole": ["nodeAffinity", "resources"],
        "examples": False,
    },
}
# Labels that name a release or a version, not the object.
OF_RELEASES = ("app.kubernetes.io/version", "helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by")


def output(*command, **kwargs):
    return subprocess.run(command, check=True, capture_output=True, **kwargs).stdout


def packages(repository, chart):
    """Each released package: its version and bytes."""
    git = ["git", "-C", repository]
    folder = chart["packages"].split("/")[0]
    for path in output(*git, "ls-tree", "-r", "--name-only", "HEAD", folder, text=True).split():
        match = re.fullmatch(chart["packages"], path)
        if match and by_number(match[1]) >= chart["since"]:
            yield match[1], output(*git, "show", f"HEAD:{path}")


def by_number(version):
    return [int(number) for number in re.findall(r"\d+", version)]


def leaves(values, whole, path=""):
    """Keys of nested values, joined by dots. Lists and empty maps are values. A tag differs in each version, and says nothing."""
    if isinstance(values, dict) and values and path.split(".")[-1] not in whole:
        for key, value in values.items():
            yield from leaves(value, whole, f"{path}.{key}" if path else key)
    else:
        yield path, "v0" if path.endswith(".tag") else values


def examples(text):
    """The keys that values.yaml only shows in a comment, with the value there."""
    section = ""
    for line in text.splitlines():
        if match := re.match(r"(\w+):", line):
            section = match[1]
        elif match := re.match(r"  # ?(\w+): (.+)$", line):
            yield f"{section}.{match[1]}", yaml.safe_load(match[2])


def lasting(labels):
    return {key: value for key, value in labels.items() if key not in OF_RELEASES}


def facts(document):
    """What must not change about an object, and what a reader of it depends on."""
    metadata = document["metadata"]
    found = {"kind": document["kind"], "name": metadata["name"]}
    if "namespace" in metadata:
        found["namespace"] = metadata["namespace"]
    if labels := lasting(metadata.get("labels", {})):
        found["labels"] = labels
    if "roleRef" in document:
        found["roleRef"] = document["roleRef"]["name"]
    if template := document.get("spec", {}).get("template"):
        found["selector"] = document["spec"]["selector"]["matchLabels"]
        found["podLabels"] = lasting(template["metadata"]["labels"])
        found["serviceAccount"] = template["spec"]["serviceAccountName"]
        found["containers"] = {
            one["name"]: {
                **({"command": one["command"]} if "command" in one else {}),
                "flags": sorted({f"--{flag[1]}" for arg in one.get("args", []) if (flag := re.match(r"--?([a-z][\w-]+)", arg))}),
            }
            for one in template["spec"]["containers"]
        }
    return found


def rendered(helm, folder, arguments):
    # Selectors of some charts have the release's name, which is the chart's in the tests, too.
    text = output(helm, "template", folder.name, str(folder), *arguments, text=True)
    documents = [document for document in yaml.safe_load_all(text) if document]
    return sorted((facts(document) for document in documents), key=lambda one: (one["kind"], one["name"]))


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in CHARTS:
        sys.exit(__doc__)
    name, chart = sys.argv[1], CHARTS[sys.argv[1]]
    corpus = ESTABLISHED / name
    helm = output(ROOT / "scripts/helm.sh", text=True).strip()
    corpus.mkdir(parents=True, exist_ok=True)
    for stale in corpus.glob("*.json"):
        stale.unlink()
    groups = []
    for version, package in sorted(packages(sys.argv[2], chart), key=lambda one: by_number(one[0])):
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "chart.tgz"
            archive.write_bytes(package)
            with tarfile.open(archive) as opened:
                opened.extractall(folder, filter="data")
            unpacked = Path(folder) / name
            text = (unpacked / "values.yaml").read_text()
            shown = examples(text) if chart["examples"] else []
            known = {
                "values": dict(leaves(yaml.safe_load(text), chart["whole"])),
                "examples": {key: value for key, value in shown if not key.endswith(".imageTag")},
                "objects": rendered(helm, unpacked, chart["render"]),
            }
        for group in groups:
            if group["facts"] == known:
                group["versions"].append(version)
                break
        else:
            groups.append({"versions": [version], "facts": known})
    for group in groups:
        path = corpus / f"{group['versions'][0]}.json"
        path.write_text(json.dumps({"versions": group["versions"], **group["facts"]}, indent=1, ensure_ascii=False) + "\n")
        print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
