//! The server's description of itself: health, version, groups, resources.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{aggregated, openapi};
use crate::object::to_bytes;
use crate::registry::{Kind, Registry, priority};
use crate::server::handle::Kubernetes;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// The release that is simulated: that of this workspace's Kubernetes types, and of the real server in the comparison
/// tests.
const MAJOR: &str = "1";
const MINOR: &str = "36";
const RELEASE: &str = "v1.36.0+cerulean";

/// Whether a path is served without a token (Kubernetes: `system:public-info-viewer`).
pub(crate) fn is_public(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    matches!(first, "healthz" | "readyz" | "livez" | "version")
}

/// Media type and body for a path outside of the resources; `None` if there is no such path.
pub(crate) fn answer(kubernetes: &Kubernetes, path: &str, accept: &str) -> Option<(&'static str, Bytes)> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let state = kubernetes.shared.state.lock();
    let registry = &state.registry;
    let json = |value: Value| Some((JSON, to_bytes(&value)));
    if let (["api" | "apis"], Some((version, media_type))) =
        (segments.as_slice(), aggregated::negotiate(accept))
    {
        let groups = aggregated(registry, segments == ["api"]);
        return Some((media_type, to_bytes(&aggregated::list(version, groups))));
    }
    match segments.as_slice() {
        ["healthz" | "readyz" | "livez", ..] => Some((TEXT, Bytes::from_static(b"ok"))),
        ["version"] => json(version()),
        [".well-known", "openid-configuration"] => json(crate::identity::openid_configuration()),
        ["openid", "v1", "jwks"] => {
            drop(state);
            json(json!({ "keys": [kubernetes.signing_key().ok()?.jwk()] }))
        }
        [] => json(paths(registry)),
        ["api"] => json(core_versions()),
        ["apis"] => json(groups(registry)),
        ["api", "v1"] => json(resources(registry, "", "v1")),
        ["apis", group] => json(group_named(registry, group)?),
        ["apis", group, version] if registry.serves(group, version) => {
            json(resources(registry, group, version))
        }
        ["openapi", "v2"] if accept.contains("protobuf") => {
            Some((openapi::PROTOBUF, openapi::v2_protobuf(registry)))
        }
        ["openapi", "v2"] => json(openapi::v2(registry)),
        ["openapi", "v3"] => json(openapi::v3_index(registry)),
        ["openapi", "v3", "api", version] => json(openapi::v3(registry, "", version)?),
        ["openapi", "v3", "apis", group, version] => json(openapi::v3(registry, group, version)?),
        _ => None,
    }
}

fn version() -> Value {
    json!({
        "major": MAJOR,
        "minor": MINOR,
        "gitVersion": RELEASE,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": "linux/amd64",
    })
}

fn paths(registry: &Registry) -> Value {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for (group, versions) in group_versions(registry) {
        paths.push(format!("/apis/{group}"));
        paths.extend(versions.iter().map(|version| format!("/apis/{group}/{version}")));
    }
    paths.extend(
        ["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"].map(str::to_owned),
    );
    json!({ "paths": paths })
}

fn core_versions() -> Value {
    json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] })
}

/// Named groups in the order of the table, with their versions, the preferred one first.
fn group_versions(registry: &Registry) -> Vec<(&str, Vec<&str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for kind in registry.kinds().iter().filter(|kind| !kind.group.is_empty()) {
        match groups.iter_mut().find(|(group, _)| *group == kind.group) {
            Some((_, versions)) if versions.contains(&kind.version.as_str()) => {}
            Some((_, versions)) => versions.push(&kind.version),
            None => groups.push((&kind.group, vec![&kind.version])),
        }
    }
    for (group, versions) in &mut groups {
        let custom = |kind: &Kind| kind.is_custom() && kind.group == *group;
        if registry.kinds().iter().any(|kind| custom(kind)) {
            versions.sort_by_key(|version| priority(version));
        }
    }
    groups
}

/// The core group, or all named ones.
fn aggregated(registry: &Registry, core: bool) -> Vec<Value> {
    let groups = if core { vec![("", vec!["v1"])] } else { group_versions(registry) };
    groups
        .iter()
        .map(|(group, versions)| {
            let lists: Vec<(&str, Value)> =
                versions.iter().map(|version| (*version, resources(registry, group, version))).collect();
            aggregated::group(group, &lists)
        })
        .collect()
}

fn group_value(group: &str, versions: &[&str]) -> Value {
    let entry = |version: &&str| json!({ "groupVersion": format!("{group}/{version}"), "version": version });
    let preferred = versions.first().map(entry);
    json!({ "name": group, "versions": versions.iter().map(entry).collect::<Vec<_>>(), "preferredVersion": preferred })
}

fn groups(registry: &Registry) -> Value {
    let groups: Vec<Value> =
        group_versions(registry).iter().map(|(group, versions)| group_value(group, versions)).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

fn group_named(registry: &Registry, name: &str) -> Option<Value> {
    let groups = group_versions(registry);
    let (group, versions) = groups.iter().find(|(group, _)| *group == name)?;
    let mut value = group_value(group, versions);
    value["kind"] = "APIGroup".into();
    value["apiVersion"] = "v1".into();
    Some(value)
}

fn resources(registry: &Registry, group: &str, version: &str) -> Value {
    let mut rows = Vec::new();
    for kind in registry.kinds().iter().filter(|kind| kind.group == group && kind.version == version) {
        rows.push(resource(kind));
        if kind.has_status() {
            rows.push(subresource(kind, "status", &kind.kind));
        }
        for own in kind.builtin().map(|builtin| builtin.subresources).unwrap_or_default() {
            let (group_version, takes) = own.takes;
            let mut row = subresource(kind, own.name, takes);
            row["verbs"] = json!([own.verb]);
            if let Some((group, version)) = group_version {
                (row["group"], row["version"]) = (group.into(), version.into());
            }
            rows.push(row);
        }
        if kind.scale {
            let mut row = subresource(kind, "scale", "Scale");
            (row["group"], row["version"]) = ("autoscaling".into(), "v1".into());
            rows.push(row);
        }
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": rows })
}

fn resource(kind: &Kind) -> Value {
    let verbs: &[&str] = if kind.is_review() {
        &["create"]
    } else if kind.is_custom() {
        &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    } else {
        &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    };
    let mut row = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": verbs,
    });
    if !kind.short_names.is_empty() {
        row["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        row["categories"] = json!(kind.categories);
    }
    row
}

/// A row of a subresource; `takes` is the kind of its objects.
fn subresource(kind: &Kind, name: &str, takes: &str) -> Value {
    json!({
        "name": format!("{}/{name}", kind.plural),
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": takes,
        "verbs": ["get", "patch", "update"],
    })
}
