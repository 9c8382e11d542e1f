//! Validates the specification of pods, in pods and in templates.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds::shared::metadata::labels;
use crate::kinds::shared::names::{dns_label, dns_subdomain, port_name, qualified_name};
use crate::object::invalid::{Causes, Invalid};
use crate::object::pointer::{list_at, members, text_at};
use crate::object::quantity::Quantity;

const PORT: &str = "must be between 1 and 65535, inclusive";

const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];

const DNS_POLICIES: &[&str] = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];

const HANDLERS: &[&str] = &["exec", "httpGet", "tcpSocket", "grpc"];

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// The allowed restart policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restarts {
    /// Any: for pods themselves, and templates without a controller.
    Any,
    /// `Always`: controllers of services keep pods running.
    Always,
    /// `OnFailure` or `Never`: Jobs let pods end.
    AtMostOnFailure,
}

/// Validates a pod's restart policy.
fn validate_restarts(spec: &Value, field: &str, restarts: Restarts, causes: &mut Causes) {
    let policy = text_at(spec, "/restartPolicy");
    let at = format!("{field}.restartPolicy");
    match restarts {
        Restarts::Always => causes.check_one_of(at, policy, &["Always"]),
        Restarts::AtMostOnFailure if !matches!(policy, "OnFailure" | "Never") => {
            causes.push(Invalid::required(at, "valid values: \"OnFailure\", \"Never\""));
        }
        _ => causes.check_one_of(at, policy, &["Always", "OnFailure", "Never"]),
    }
}

/// Validates the specification `spec`, which messages call `field`.
pub(crate) fn validate(spec: &Value, field: &str, restarts: Restarts, causes: &mut Causes) {
    let volumes = validate_volumes(spec, field, causes);
    if list_at(spec, "/containers").is_empty() {
        causes.push(Invalid::required(format!("{field}.containers"), ""));
    }
    let mut names = BTreeSet::new();
    for list in ["containers", "initContainers"] {
        for (index, container) in list_at(spec, &format!("/{list}")).iter().enumerate() {
            validate_container(container, &format!("{field}.{list}[{index}]"), &volumes, &mut names, causes);
        }
    }
    validate_restarts(spec, field, restarts, causes);
    let policy = text_at(spec, "/dnsPolicy");
    causes.check_one_of(format!("{field}.dnsPolicy"), policy, DNS_POLICIES);
    let account = text_at(spec, "/serviceAccountName");
    if !account.is_empty() {
        causes.check(format!("{field}.serviceAccountName"), account, dns_subdomain);
    }
    labels(spec, "/nodeSelector", &format!("{field}.nodeSelector"), causes);
    validate_tolerations(spec, field, causes);
}

fn validate_tolerations(spec: &Value, field: &str, causes: &mut Causes) {
    for (index, toleration) in list_at(spec, "/tolerations").iter().enumerate() {
        let at = |member: &str| format!("{field}.tolerations[{index}].{member}");
        let (key, operator) = (text_at(toleration, "/key"), text_at(toleration, "/operator"));
        if !key.is_empty() {
            causes.check(at("key"), key, qualified_name);
        } else if operator != "Exists" {
            let why =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            causes.push(Invalid::text(at("operator"), operator, why));
        }
        if !operator.is_empty() {
            causes.check_one_of(at("operator"), operator, &["Equal", "Exists"]);
        }
        let effect = text_at(toleration, "/effect");
        if !effect.is_empty() {
            causes.check_one_of(at("effect"), effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        }
    }
}

/// Validates the volumes. Returns their names.
fn validate_volumes<'a>(spec: &'a Value, field: &str, causes: &mut Causes) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (index, volume) in list_at(spec, "/volumes").iter().enumerate() {
        unique_name(volume, &format!("{field}.volumes[{index}].name"), &mut names, causes);
        let mut sources = volume.as_object().into_iter().flatten().filter(|(member, _)| *member != "name");
        if let Some((source, _)) = sources.nth(1) {
            let why = "may not specify more than 1 volume type";
            causes.push(Invalid::forbidden(format!("{field}.volumes[{index}].{source}"), why));
        }
    }
    names
}

/// Validates the name of a volume or container, and that no other one in `names` has it.
fn unique_name<'a>(item: &'a Value, field: &str, names: &mut BTreeSet<&'a str>, causes: &mut Causes) {
    let name = text_at(item, "/name");
    if name.is_empty() {
        causes.push(Invalid::required(field, ""));
    } else if let Err(why) = dns_label(name) {
        causes.push(Invalid::text(field, name, &why));
    } else if !names.insert(name) {
        causes.push(Invalid::duplicate(field, format!("{name:?}")));
    }
}

fn validate_container<'a>(
    container: &'a Value,
    field: &str,
    volumes: &BTreeSet<&str>,
    names: &mut BTreeSet<&'a str>,
    causes: &mut Causes,
) {
    unique_name(container, &format!("{field}.name"), names, causes);
    let image = text_at(container, "/image");
    if image.is_empty() {
        causes.push(Invalid::required(format!("{field}.image"), ""));
    } else if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        causes.push(Invalid::text(format!("{field}.image"), image, why));
    }
    validate_ports(container, field, causes);
    validate_environment(container, field, causes);
    validate_mounts(container, field, volumes, causes);
    let policy = text_at(container, "/imagePullPolicy");
    causes.check_one_of(format!("{field}.imagePullPolicy"), policy, PULL_POLICIES);
    validate_resources(container, field, causes);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        validate_probe(container.get(probe), &format!("{field}.{probe}"), probe == "readinessProbe", causes);
    }
}

fn validate_ports(container: &Value, field: &str, causes: &mut Causes) {
    let mut names = BTreeSet::new();
    for (index, port) in list_at(container, "/ports").iter().enumerate() {
        let at = |member: &str| format!("{field}.ports[{index}].{member}");
        let name = text_at(port, "/name");
        if !name.is_empty() {
            match port_name(name) {
                Err(why) => causes.push(Invalid::text(at("name"), name, why)),
                Ok(()) if !names.insert(name) => {
                    causes.push(Invalid::duplicate(at("name"), format!("{name:?}")));
                }
                Ok(()) => {}
            }
        }
        match port.get("containerPort").and_then(Value::as_i64).unwrap_or(0) {
            0 => causes.push(Invalid::required(at("containerPort"), "")),
            1..=65535 => {}
            other => causes.push(Invalid::value(at("containerPort"), other, PORT)),
        }
        causes.check_one_of(at("protocol"), text_at(port, "/protocol"), PROTOCOLS);
    }
}

fn validate_environment(container: &Value, field: &str, causes: &mut Causes) {
    for (index, variable) in list_at(container, "/env").iter().enumerate() {
        let at = |member: &str| format!("{field}.env[{index}].{member}");
        let name = text_at(variable, "/name");
        if name.is_empty() {
            causes.push(Invalid::required(at("name"), ""));
        } else if name.contains('=') || !name.chars().all(|c| c.is_ascii_graphic() || c == ' ') {
            let why = "a valid environment variable name must consist only of printable ASCII characters other than '='";
            causes.push(Invalid::text(at("name"), name, why));
        }
        let from = variable.get("valueFrom").and_then(Value::as_object);
        match from.map(serde_json::Map::len) {
            Some(_) if !text_at(variable, "/value").is_empty() => {
                let why = "may not be specified when `value` is not empty";
                causes.push(Invalid::text(at("valueFrom"), "", why));
            }
            Some(0) => {
                let why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`";
                causes.push(Invalid::text(at("valueFrom"), "", why));
            }
            Some(2..) => {
                let why = "may not have more than one field specified at a time";
                causes.push(Invalid::text(at("valueFrom"), "", why));
            }
            _ => {}
        }
    }
}

fn validate_mounts(container: &Value, field: &str, volumes: &BTreeSet<&str>, causes: &mut Causes) {
    let mut paths = BTreeSet::new();
    for (index, mount) in list_at(container, "/volumeMounts").iter().enumerate() {
        let at = |member: &str| format!("{field}.volumeMounts[{index}].{member}");
        let (name, path) = (text_at(mount, "/name"), text_at(mount, "/mountPath"));
        if name.is_empty() {
            causes.push(Invalid::required(at("name"), ""));
        }
        if !volumes.contains(name) {
            causes.push(Invalid::new(at("name"), format!("Not found: {name:?}")));
        }
        if path.is_empty() {
            causes.push(Invalid::required(at("mountPath"), ""));
        } else if !paths.insert(path) {
            causes.push(Invalid::text(at("mountPath"), path, "must be unique"));
        }
    }
}

fn validate_resources(container: &Value, field: &str, causes: &mut Causes) {
    for part in ["limits", "requests"] {
        for (resource, amount) in members(container, &format!("/resources/{part}")) {
            let text = amount.as_str().unwrap_or_default();
            let at = format!("{field}.resources.{part}[{resource}]");
            if Quantity::parse(text).is_some_and(|amount| amount.nanos() < 0) {
                causes.push(Invalid::text(at, text, "must be greater than or equal to 0"));
            }
        }
    }
    for (resource, request) in members(container, "/resources/requests") {
        let limit = container.pointer("/resources/limits").and_then(|limits| limits.get(resource));
        let (Some(request), Some(limit)) = (request.as_str(), limit.and_then(Value::as_str)) else {
            continue;
        };
        let (Some(asked), Some(most)) = (Quantity::parse(request), Quantity::parse(limit)) else { continue };
        if asked.nanos() > most.nanos() {
            let why = format!("must be less than or equal to {resource} limit of {most}");
            causes.push(Invalid::text(format!("{field}.resources.requests"), &asked.to_string(), &why));
        }
    }
}

fn validate_probe(probe: Option<&Value>, field: &str, readiness: bool, causes: &mut Causes) {
    let Some(probe) = probe.filter(|probe| probe.is_object()) else { return };
    match HANDLERS.iter().filter(|handler| probe.get(**handler).is_some_and(|value| !value.is_null())).count()
    {
        0 => causes.push(Invalid::required(field, "must specify a handler type")),
        1 => {}
        _ => causes.push(Invalid::forbidden(field, "may not specify more than 1 handler type")),
    }
    if let Some(times) = probe.get("successThreshold").and_then(Value::as_i64)
        && !readiness
        && times != 1
    {
        causes.push(Invalid::value(format!("{field}.successThreshold"), times, "must be 1"));
    }
}
