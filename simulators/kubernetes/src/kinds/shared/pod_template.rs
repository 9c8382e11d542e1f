//! Specifications of pods, in pods and in the templates of workloads: their defaults, derived members, and the rules of
//! templates.

use serde_json::{Map, Value, json};

use super::defaults::fill;
use super::pod_spec;
use crate::kinds::shared::defaults::Row;
use crate::kinds::shared::metadata::labels;
use crate::kinds::shared::pod_spec::Restarts;
use crate::object::invalid::Causes;
use crate::object::pointer::text_at;

const CONTAINER: &[Row] = &[
    ("terminationMessagePath", r#""/dev/termination-log""#),
    ("terminationMessagePolicy", r#""File""#),
    ("ports[].protocol", r#""TCP""#),
    ("env[].valueFrom.fieldRef.apiVersion", r#""v1""#),
    ("lifecycle.postStart.httpGet.path", r#""/""#),
    ("lifecycle.postStart.httpGet.scheme", r#""HTTP""#),
    ("lifecycle.preStop.httpGet.path", r#""/""#),
    ("lifecycle.preStop.httpGet.scheme", r#""HTTP""#),
];

const PROBE: &[Row] = &[
    ("timeoutSeconds", "1"),
    ("periodSeconds", "10"),
    ("successThreshold", "1"),
    ("failureThreshold", "3"),
    ("httpGet.path", r#""/""#),
    ("httpGet.scheme", r#""HTTP""#),
    ("grpc.service", r#""""#),
];

const POD_SPEC: &[Row] = &[
    ("restartPolicy", r#""Always""#),
    ("dnsPolicy", r#""ClusterFirst""#),
    ("schedulerName", r#""default-scheduler""#),
    ("terminationGracePeriodSeconds", "30"),
    ("securityContext", "{}"),
    ("volumes[].secret.defaultMode", "420"),
    ("volumes[].configMap.defaultMode", "420"),
    ("volumes[].downwardAPI.defaultMode", "420"),
    ("volumes[].downwardAPI.items[].fieldRef.apiVersion", r#""v1""#),
    ("volumes[].projected.defaultMode", "420"),
    ("volumes[].projected.sources[].serviceAccountToken.expirationSeconds", "3600"),
    ("volumes[].projected.sources[].downwardAPI.items[].fieldRef.apiVersion", r#""v1""#),
    ("volumes[].hostPath.type", r#""""#),
    ("volumes[].azureDisk.cachingMode", r#""ReadWrite""#),
    ("volumes[].azureDisk.fsType", r#""ext4""#),
    ("volumes[].azureDisk.readOnly", "false"),
    ("volumes[].azureDisk.kind", r#""Shared""#),
    ("volumes[].iscsi.iscsiInterface", r#""default""#),
    ("volumes[].ephemeral.volumeClaimTemplate.spec.volumeMode", r#""Filesystem""#),
];

/// Applies the defaults of a pod specification at a pointer. A template without a specification gets one that consists
/// of defaults.
pub(crate) fn apply_defaults(object: &mut Value, pod_spec: &str) {
    if let Some((template, _)) = pod_spec.rsplit_once('/')
        && let Some(Value::Object(template)) = object.pointer_mut(template)
        && let spec = template.entry("spec").or_insert_with(|| Value::Object(Map::new()))
        && spec.is_object()
    {
        apply_to_pods(spec);
    }
}

fn apply_to_pods(spec: &mut Value) {
    fill(spec, POD_SPEC);
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            fill(container, CONTAINER);
            for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
                if let Some(probe) = container.get_mut(probe) {
                    fill(probe, PROBE);
                }
            }
        }
    }
}

/// Derives members of a pod specification from others.
pub(crate) fn derive_members(spec: &mut Value) {
    let Some(members) = spec.as_object_mut() else { return };
    // Two names of one member: the newer one counts.
    let account = members.get("serviceAccountName").or_else(|| members.get("serviceAccount")).cloned();
    match account.filter(|account| account != "") {
        Some(account) => {
            members.insert("serviceAccountName".into(), account.clone());
            members.insert("serviceAccount".into(), account);
        }
        None => {
            members.remove("serviceAccount");
        }
    }
    for volume in members.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(volume) =
            volume.as_object_mut().filter(|volume| volume.len() == 1 && volume.contains_key("name"))
        {
            volume.insert("emptyDir".into(), json!({}));
        }
    }
    let host = members.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in members.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let policy = pull_policy(text_at(container, "/image"));
            let Some(container) = container.as_object_mut() else { continue };
            container.entry("imagePullPolicy").or_insert_with(|| policy.into());
            let ports = container.get_mut("ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten().filter(|_| host).filter_map(Value::as_object_mut) {
                if let Some(number) = port.get("containerPort").cloned() {
                    port.entry("hostPort").or_insert(number);
                }
            }
        }
    }
}

/// The pull policy of an image: an image without a tag, or with the tag `latest`, is pulled each time.
fn pull_policy(image: &str) -> &'static str {
    let name = image.rsplit('/').next().unwrap_or_default();
    if name.contains('@') {
        return "IfNotPresent";
    }
    match name.split_once(':') {
        None | Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

/// Validates a template's labels and pod specification.
pub(crate) fn template(spec: &Value, field: &str, restarts: Restarts, causes: &mut Causes) {
    labels(spec, "/template/metadata/labels", &format!("{field}.template.labels"), causes);
    let pods = spec.pointer("/template/spec").unwrap_or(&Value::Null);
    pod_spec::validate(pods, &format!("{field}.template.spec"), restarts, causes);
}
