#!/usr/bin/env python3
"""Writes the table of the facts about Kubernetes' types that OpenAPI lacks: the protobuf number of each member, and
whether it is left out when empty.

    scripts/kubernetes_types.py VERSION > simulators/kubernetes/src/wire/members.txt

VERSION is that of k8s.io/api and its sister modules, such as v0.33.5; Go downloads them. The table contains only the
types that the kinds below refer to. This workspace's Kubernetes version (k8s-openapi's feature) must change with it.
"""

import json
import re
import subprocess
import sys
import tempfile

# Package in the table -> module, folder.
PACKAGES = {
    "meta/v1": ("k8s.io/apimachinery", "pkg/apis/meta/v1"),
    "intstr": ("k8s.io/apimachinery", "pkg/util/intstr"),
    "resource": ("k8s.io/apimachinery", "pkg/api/resource"),
    "runtime": ("k8s.io/apimachinery", "pkg/runtime"),
    "types": ("k8s.io/apimachinery", "pkg/types"),
    "apiextensions/v1": ("k8s.io/apiextensions-apiserver", "pkg/apis/apiextensions/v1"),
    "apiregistration/v1": ("k8s.io/kube-aggregator", "pkg/apis/apiregistration/v1"),
} | {
    name: ("k8s.io/api", name)
    for name in (
        "admissionregistration/v1 apps/v1 authentication/v1 authorization/v1 autoscaling/v1 autoscaling/v2 batch/v1 "
        "certificates/v1 coordination/v1 core/v1 discovery/v1 events/v1 flowcontrol/v1 networking/v1 node/v1 policy/v1 "
        "rbac/v1 scheduling/v1 storage/v1"
    ).split()
}

# Package -> prefix of its definitions in OpenAPI documents.
PREFIXES = {
    "meta/v1": "io.k8s.apimachinery.pkg.apis.meta.v1",
    "apiextensions/v1": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
    "apiregistration/v1": "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1",
}

# Kinds that clients send and the server returns.
ROOTS = {
    "core/v1": "Namespace Node PersistentVolume PersistentVolumeClaim Service Pod Secret ConfigMap ServiceAccount Endpoints "
    "Event ReplicationController ResourceQuota LimitRange PodTemplate Binding",
    "events/v1": "Event",
    "coordination/v1": "Lease",
    "discovery/v1": "EndpointSlice",
    "apps/v1": "Deployment ReplicaSet DaemonSet StatefulSet ControllerRevision",
    "batch/v1": "Job CronJob",
    "autoscaling/v1": "Scale HorizontalPodAutoscaler",
    "autoscaling/v2": "HorizontalPodAutoscaler",
    "networking/v1": "Ingress IngressClass NetworkPolicy",
    "policy/v1": "PodDisruptionBudget Eviction",
    "rbac/v1": "Role RoleBinding ClusterRole ClusterRoleBinding",
    "storage/v1": "StorageClass CSIDriver CSINode VolumeAttachment CSIStorageCapacity",
    "scheduling/v1": "PriorityClass",
    "node/v1": "RuntimeClass",
    "certificates/v1": "CertificateSigningRequest",
    "flowcontrol/v1": "FlowSchema PriorityLevelConfiguration",
    "admissionregistration/v1": "MutatingWebhookConfiguration ValidatingWebhookConfiguration ValidatingAdmissionPolicy "
    "ValidatingAdmissionPolicyBinding",
    "apiextensions/v1": "CustomResourceDefinition",
    "apiregistration/v1": "APIService",
    "authentication/v1": "TokenReview TokenRequest SelfSubjectReview",
    "authorization/v1": "SubjectAccessReview LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview",
    "meta/v1": "DeleteOptions",
}

# Types with their own encoding: the program that reads the table knows their formats.
OWN_FORM = {
    "meta/v1.Time", "meta/v1.MicroTime", "meta/v1.Duration", "meta/v1.FieldsV1", "resource.Quantity", "intstr.IntOrString",
    "runtime.RawExtension", "apiextensions/v1.JSON", "apiextensions/v1.JSONSchemaPropsOrArray",
    "apiextensions/v1.JSONSchemaPropsOrBool", "apiextensions/v1.JSONSchemaPropsOrStringArray",
}
BASIC = {"string", "bool", "int32", "int64", "float64", "[]byte"}


def modules(version):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/go.mod", "w", encoding="utf-8") as file:
            file.write("module table\ngo 1.23\n")
        for module in sorted({module for module, _ in PACKAGES.values()}):
            command = ["go", "mod", "download", "-json", f"{module}@{version}"]
            found = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
            yield module, json.loads(found.stdout)["Dir"]


def sources(folder):
    import pathlib
    for path in sorted(pathlib.Path(folder).glob("*.go")):
        if not re.search(r"_test\.go$|^zz_|generated", path.name):
            yield path.read_text(encoding="utf-8")


def imports(text):
    """Alias -> package of the table."""
    paths = {f"{module}/{folder}": name for name, (module, folder) in PACKAGES.items()}
    block = "\n".join(re.findall(r"^import \((.*?)^\)", text, re.S | re.M) + re.findall(r"^import (.*)$", text, re.M))
    found = {}
    for alias, path in re.findall(r"^\s*(\w*)\s*\"([^\"]+)\"", block, re.M):
        if path in paths:
            found[alias or path.rsplit("/", 1)[1]] = paths[path]
    return found


def full(go_type, package, known):
    """A Go type with the packages of the table in its names."""
    def name(match):
        word = match.group(0)
        if word in BASIC or word in ("map", "byte", "interface"):
            return word
        if "." in word:
            alias, rest = word.split(".")
            return f"{known.get(alias, alias)}.{rest}"
        return f"{package}.{word}"
    return re.sub(r"[A-Za-z_][\w.]*", name, go_type).replace("[]byte", "bytes")


class Types:
    def __init__(self):
        self.structs, self.aliases = {}, {}

    def read(self, package, text):
        known = imports(text)
        for name, body in re.findall(r"^type (\w+) struct \{\n(.*?)^\}", text, re.S | re.M):
            self.structs[f"{package}.{name}"] = list(self.fields(package, known, body))
        for name in re.findall(r"^type (\w+) struct ?\{ ?\}", text, re.M):
            self.structs[f"{package}.{name}"] = []
        # Declarations in a block, and single ones.
        for name, to in re.findall(r"^(?:type )?\t?(\w+) =? ?((?:map\[|\[\]|\*)?[\w.\]\[]+)$", text, re.M):
            if name not in ("package", "return", "import") and not to.startswith("struct"):
                self.aliases.setdefault(f"{package}.{name}", full(to, package, known))

    def fields(self, package, known, body):
        for line in map(str.strip, body.splitlines()):
            match = re.match(r"(?:(\w+)\s+)?(\S+)\s+`(.*)`", line)
            if not match or line.startswith("//"):
                continue
            go_name, go_type, tags = match.groups()
            tag = dict(re.findall(r'(\w+):"([^"]*)"', tags))
            json_name, *options = tag.get("json", "").split(",")
            number = re.search(r",(\d+),", tag.get("protobuf", ""))
            inline = "inline" in options or (json_name == "" and go_name is None)
            # A field without a number is the embedded TypeMeta, which the protobuf envelope carries.
            if json_name != "-" and number:
                name = "." if inline else json_name
                zero = "omitzero" in options
                yield name, "omitempty" in options, int(number.group(1)), full(go_type, package, known), zero

    def reach(self, name, found):
        if name in found or name in OWN_FORM or name in BASIC:
            return
        if name in self.structs:
            found.add(name)
            for field in self.structs[name]:
                for inner in re.findall(r"[\w/]+\.\w+", field[3]):
                    self.reach(inner, found)
        elif name in self.aliases:
            found.add(name)
            for inner in re.findall(r"[\w/]+\.\w+", self.aliases[name]):
                self.reach(inner, found)
        else:
            raise SystemExit(f"unknown type {name}")

    def write(self, name, out):
        package, short = name.split(".")
        words = [short]
        for member, optional, number, go_type, zero in self.structs[name]:
            # A named type for a list of texts is a message with that list.
            wrapped = any(self.aliases.get(inner) == "[]string" for inner in re.findall(r"[\w/]+\.\w+", go_type))
            flags = "?" * optional + "*" * go_type.startswith("*") + "~" * wrapped + "!" * zero
            words.append(f"{member}{flags}={number}")
            if member == ".":
                inner = go_type.lstrip("*")
                words[-1] += ":" + (inner.split(".")[1] if inner.startswith(f"{package}.") else definition(inner))
        out.append(" ".join(words))


def definition(name):
    package, short = name.split(".")
    return f"{PREFIXES.get(package, 'io.k8s.api.' + package.replace('/', '.'))}.{short}"


def main():
    version = sys.argv[1]
    folders = dict(modules(version))
    types = Types()
    for package, (module, folder) in PACKAGES.items():
        for text in sources(f"{folders[module]}/{folder}"):
            types.read(package, text)
    found = set()
    for package, kinds in ROOTS.items():
        for kind in kinds.split():
            types.reach(f"{package}.{kind}", found)
    out = [f"# Members of Kubernetes {version}, written by scripts/kubernetes_types.py."]
    last = ""
    for name in sorted(found & set(types.structs)):
        package = definition(name).rsplit(".", 1)[0]
        if package != last:
            out.append(f"package {package}")
            last = package
        types.write(name, out)
    print("\n".join(out))


main()
