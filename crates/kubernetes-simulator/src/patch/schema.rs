//! How the lists and maps of each kind merge, from the OpenAPI document of kube-apiserver:
//! `x-kubernetes-patch-strategy`, `x-kubernetes-patch-merge-key`, `x-kubernetes-list-type`,
//! `x-kubernetes-list-map-keys` and `x-kubernetes-map-type`.

use serde_json::Value;

/// How one list merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    /// The new list replaces the old one.
    Atomic,
    /// Values of which each is there once.
    Set,
    /// Objects told apart by the values of some members. Strategic merge looks at the first alone.
    Keyed(&'static [&'static str]),
}

use List::{Keyed, Set};

const META: &[(&str, List)] = &[("metadata.finalizers", Set), ("metadata.ownerReferences", Keyed(&["uid"]))];

const SERVICE: &[(&str, List)] =
    &[("spec.ports", Keyed(&["port", "protocol"])), ("status.conditions", Keyed(&["type"]))];

const NODE: &[(&str, List)] = &[
    ("spec.podCIDRs", Set),
    ("status.addresses", Keyed(&["type"])),
    ("status.conditions", Keyed(&["type"])),
];

const POD: &[(&str, List)] = &[
    ("spec.containers", Keyed(&["name"])),
    ("spec.containers.env", Keyed(&["name"])),
    ("spec.containers.ports", Keyed(&["containerPort", "protocol"])),
    ("spec.containers.volumeDevices", Keyed(&["devicePath"])),
    ("spec.containers.volumeMounts", Keyed(&["mountPath"])),
    ("spec.hostAliases", Keyed(&["ip"])),
    ("spec.imagePullSecrets", Keyed(&["name"])),
    ("spec.topologySpreadConstraints", Keyed(&["topologyKey", "whenUnsatisfiable"])),
    ("spec.volumes", Keyed(&["name"])),
    ("status.conditions", Keyed(&["type"])),
    ("status.podIPs", Keyed(&["ip"])),
];

const SERVICE_ACCOUNT: &[(&str, List)] = &[("secrets", Keyed(&["name"]))];

const CONDITIONS: &[(&str, List)] = &[("status.conditions", Keyed(&["type"]))];

const WORKLOADS: &[&str] = &["Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job"];

/// The rule of the list at `path`: member names joined by dots, list items left out.
pub(crate) fn list(kind: &str, path: &str) -> List {
    let (kind, path) = template(kind, path);
    if path.starts_with("metadata.") {
        return find(META, path);
    }
    match kind {
        "Service" => find(SERVICE, path),
        "Node" => find(NODE, path),
        "Pod" => {
            for other in ["spec.initContainers", "spec.ephemeralContainers"] {
                if let Some(rest) = path.strip_prefix(other) {
                    return find(POD, &format!("spec.containers{rest}"));
                }
            }
            find(POD, path)
        }
        "ServiceAccount" => find(SERVICE_ACCOUNT, path),
        "Namespace" | "PersistentVolumeClaim" => find(CONDITIONS, path),
        kind if WORKLOADS.contains(&kind) => find(CONDITIONS, path),
        _ => List::Atomic,
    }
}

/// Whether the map at `path` is owned and replaced as a whole by server-side apply.
pub(super) fn atomic_map(kind: &str, path: &str) -> bool {
    let (kind, path) = template(kind, path);
    match kind {
        "Service" => path == "spec.selector",
        "Pod" => path == "spec.nodeSelector" || path.ends_with("abelSelector"),
        "PersistentVolumeClaim" => path == "spec.selector",
        "Event" => matches!(path, "involvedObject" | "related" | "regarding"),
        kind => WORKLOADS.contains(&kind) && path == "spec.selector",
    }
}

/// The value that a list-map key has where an item leaves it out.
pub(super) fn key_default(key: &str) -> Option<Value> {
    (key == "protocol").then(|| Value::from("TCP"))
}

fn template<'a>(kind: &'a str, path: &'a str) -> (&'a str, &'a str) {
    match path.strip_prefix("spec.template.") {
        Some(inner) if WORKLOADS.contains(&kind) => ("Pod", inner),
        _ => (kind, path),
    }
}

fn find(table: &[(&str, List)], path: &str) -> List {
    table.iter().find(|(at, _)| *at == path).map_or(List::Atomic, |(_, rule)| *rule)
}

/// `path` with one more member.
pub(crate) fn join(path: &str, member: &str) -> String {
    if path.is_empty() { member.to_owned() } else { format!("{path}.{member}") }
}
