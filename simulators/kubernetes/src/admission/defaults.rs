//! Defaults of missing members: one table for each kind (Kubernetes API reference; `SetDefaults_…` of each group).
//!
//! A row holds a path and a value as JSON. The value is set if the last member of the path is missing and all members
//! before it exist; `list[]` applies to each item, and `member{name=value}` continues only if the member has that
//! value. Rows are applied in order, so that a row can fill in an object that an earlier one created.

use serde_json::{Map, Value};

use crate::registry::Kind;

type Row = (&'static str, &'static str);

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

const POD: &[Row] = &[
    ("spec.enableServiceLinks", "true"),
    ("spec.preemptionPolicy", r#""PreemptLowerPriority""#),
    ("spec.priority", "0"),
    ("status", "{}"),
    ("status.phase", r#""Pending""#),
];

const DEPLOYMENT: &[Row] = &[
    ("spec.replicas", "1"),
    ("spec.strategy", "{}"),
    ("spec.strategy.type", r#""RollingUpdate""#),
    ("spec.strategy{type=RollingUpdate}.rollingUpdate", "{}"),
    ("spec.strategy.rollingUpdate.maxUnavailable", r#""25%""#),
    ("spec.strategy.rollingUpdate.maxSurge", r#""25%""#),
    ("spec.revisionHistoryLimit", "10"),
    ("spec.progressDeadlineSeconds", "600"),
];

const STATEFUL_SET: &[Row] = &[
    ("spec.replicas", "1"),
    ("spec.podManagementPolicy", r#""OrderedReady""#),
    ("spec.updateStrategy", "{}"),
    ("spec.updateStrategy.type", r#""RollingUpdate""#),
    ("spec.updateStrategy{type=RollingUpdate}.rollingUpdate", "{}"),
    ("spec.updateStrategy.rollingUpdate.partition", "0"),
    ("spec.revisionHistoryLimit", "10"),
    ("spec.persistentVolumeClaimRetentionPolicy", "{}"),
    ("spec.persistentVolumeClaimRetentionPolicy.whenDeleted", r#""Retain""#),
    ("spec.persistentVolumeClaimRetentionPolicy.whenScaled", r#""Retain""#),
    ("spec.volumeClaimTemplates[].apiVersion", r#""v1""#),
    ("spec.volumeClaimTemplates[].kind", r#""PersistentVolumeClaim""#),
    ("spec.volumeClaimTemplates[].spec.volumeMode", r#""Filesystem""#),
    ("spec.volumeClaimTemplates[].status", r#"{"phase": "Pending"}"#),
];

const DAEMON_SET: &[Row] = &[
    ("spec.updateStrategy", "{}"),
    ("spec.updateStrategy.type", r#""RollingUpdate""#),
    ("spec.updateStrategy{type=RollingUpdate}.rollingUpdate", "{}"),
    ("spec.updateStrategy.rollingUpdate.maxUnavailable", "1"),
    ("spec.updateStrategy.rollingUpdate.maxSurge", "0"),
    ("spec.revisionHistoryLimit", "10"),
];

const JOB_SPEC: &[Row] = &[
    ("backoffLimit", "6"),
    ("completionMode", r#""NonIndexed""#),
    ("suspend", "false"),
    ("podReplacementPolicy", r#""TerminatingOrFailed""#),
    ("manualSelector", "false"),
];

const CRON_JOB: &[Row] = &[
    ("spec.concurrencyPolicy", r#""Allow""#),
    ("spec.suspend", "false"),
    ("spec.successfulJobsHistoryLimit", "3"),
    ("spec.failedJobsHistoryLimit", "1"),
];

const WEBHOOKS: &[Row] = &[
    ("webhooks[].failurePolicy", r#""Fail""#),
    ("webhooks[].matchPolicy", r#""Equivalent""#),
    ("webhooks[].namespaceSelector", "{}"),
    ("webhooks[].objectSelector", "{}"),
    ("webhooks[].timeoutSeconds", "10"),
    ("webhooks[].rules[].scope", r#""*""#),
    ("webhooks[].clientConfig.service.port", "443"),
];

const MATCHED: &[Row] = &[
    ("matchPolicy", r#""Equivalent""#),
    ("namespaceSelector", "{}"),
    ("objectSelector", "{}"),
    ("resourceRules[].scope", r#""*""#),
    ("excludeResourceRules[].scope", r#""*""#),
];

const CSI_DRIVER: &[Row] = &[
    ("spec.attachRequired", "true"),
    ("spec.podInfoOnMount", "false"),
    ("spec.storageCapacity", "false"),
    ("spec.fsGroupPolicy", r#""ReadWriteOnceWithFSType""#),
    ("spec.volumeLifecycleModes", r#"["Persistent"]"#),
    ("spec.requiresRepublish", "false"),
    ("spec.seLinuxMount", "false"),
];

const SCALING: &[Row] = &[
    ("spec.minReplicas", "1"),
    ("spec.behavior.scaleUp", "{}"),
    ("spec.behavior.scaleUp.stabilizationWindowSeconds", "0"),
    ("spec.behavior.scaleUp.selectPolicy", r#""Max""#),
    (
        "spec.behavior.scaleUp.policies",
        r#"[{"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}]"#,
    ),
    ("spec.behavior.scaleDown", "{}"),
    ("spec.behavior.scaleDown.selectPolicy", r#""Max""#),
    ("spec.behavior.scaleDown.policies", r#"[{"type": "Percent", "value": 100, "periodSeconds": 15}]"#),
];

/// The rows of a kind itself, beside those of its pod template.
fn rows(kind: (&str, &str)) -> &'static [Row] {
    match kind {
        ("", "Pod") => POD,
        ("", "Namespace") => &[("status", "{}"), ("status.phase", r#""Active""#)],
        ("", "Secret") => &[("type", r#""Opaque""#)],
        ("", "ReplicationController") => &[("spec.replicas", "1")],
        ("", "Endpoints") => &[("subsets[].ports[].protocol", r#""TCP""#)],
        ("", "PersistentVolume") => &[
            ("spec.persistentVolumeReclaimPolicy", r#""Retain""#),
            ("spec.volumeMode", r#""Filesystem""#),
            ("spec.hostPath.type", r#""""#),
            ("spec.azureDisk.cachingMode", r#""ReadWrite""#),
            ("spec.azureDisk.fsType", r#""ext4""#),
            ("spec.azureDisk.readOnly", "false"),
            ("spec.azureDisk.kind", r#""Shared""#),
            ("spec.iscsi.iscsiInterface", r#""default""#),
            ("status", "{}"),
            ("status.phase", r#""Pending""#),
        ],
        ("", "PersistentVolumeClaim") => {
            &[("spec.volumeMode", r#""Filesystem""#), ("status", "{}"), ("status.phase", r#""Pending""#)]
        }
        ("apps", "Deployment") => DEPLOYMENT,
        ("apps", "ReplicaSet") => &[("spec.replicas", "1")],
        ("apps", "StatefulSet") => STATEFUL_SET,
        ("apps", "DaemonSet") => DAEMON_SET,
        ("batch", "CronJob") => CRON_JOB,
        ("autoscaling", "HorizontalPodAutoscaler") => SCALING,
        ("discovery.k8s.io", "EndpointSlice") => {
            &[("endpoints", "null"), ("ports[].name", r#""""#), ("ports[].protocol", r#""TCP""#)]
        }
        ("networking.k8s.io", "IngressClass") => &[("spec.parameters.scope", r#""Cluster""#)],
        ("networking.k8s.io", "NetworkPolicy") => &[
            ("spec.podSelector", "{}"),
            ("spec.ingress[].ports[].protocol", r#""TCP""#),
            ("spec.egress[].ports[].protocol", r#""TCP""#),
        ],
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            &[("roleRef.apiGroup", r#""rbac.authorization.k8s.io""#)]
        }
        ("storage.k8s.io", "StorageClass") => {
            &[("reclaimPolicy", r#""Delete""#), ("volumeBindingMode", r#""Immediate""#)]
        }
        ("storage.k8s.io", "CSIDriver") => CSI_DRIVER,
        ("scheduling.k8s.io", "PriorityClass") => &[("preemptionPolicy", r#""PreemptLowerPriority""#)],
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => &[("spec.matchingPrecedence", "1000")],
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => {
            &[("spec.limited.nominalConcurrencyShares", "30"), ("spec.limited.lendablePercent", "0")]
        }
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => {
            &[("webhooks[].reinvocationPolicy", r#""Never""#)]
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => {
            &[("spec.failurePolicy", r#""Fail""#)]
        }
        ("apiregistration.k8s.io", "APIService") => &[("spec.service.port", "443")],
        _ => &[],
    }
}

/// Tables that several kinds share, each with its path.
fn shared(kind: (&str, &str)) -> &'static [(&'static str, &'static [Row])] {
    match kind {
        ("batch", "Job") => &[("/spec", JOB_SPEC)],
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => &[("", WEBHOOKS)],
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => {
            &[("/spec/matchConstraints", MATCHED)]
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => {
            &[("/spec/matchResources", MATCHED)]
        }
        _ => &[],
    }
}

/// The path of the pod specification in a kind that has one.
pub(super) fn pod_spec(kind: &Kind) -> Option<&'static str> {
    match kind.builtin()? {
        ("", "Pod") => Some("/spec"),
        ("", "PodTemplate") => Some("/template/spec"),
        ("", "ReplicationController")
        | ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job") => Some("/spec/template/spec"),
        ("batch", "CronJob") => Some("/spec/jobTemplate/spec/template/spec"),
        _ => None,
    }
}

/// Applies the tables of a kind.
pub(super) fn apply(kind: &Kind, object: &mut Value) {
    let Some(name) = kind.builtin() else { return };
    if let Some((template, _)) = pod_spec(kind).and_then(|at| at.rsplit_once('/')) {
        // A template without a specification gets one that consists of defaults.
        if let Some(Value::Object(template)) = object.pointer_mut(template)
            && let spec = template.entry("spec").or_insert_with(|| Value::Object(Map::new()))
            && spec.is_object()
        {
            apply_to_pods(spec);
        }
    }
    fill(object, rows(name));
    for (at, rows) in shared(name) {
        if let Some(part) = object.pointer_mut(at) {
            fill(part, rows);
        }
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

fn fill(object: &mut Value, rows: &[Row]) {
    for (path, value) in rows {
        set(object, path, value);
    }
}

fn set(at: &mut Value, path: &str, value: &str) {
    let Some(members) = at.as_object_mut() else { return };
    let Some((step, rest)) = path.split_once('.') else {
        let member = members.entry(path).or_insert(Value::Null);
        if member.is_null() {
            *member = serde_json::from_str(value).unwrap_or_default();
        }
        return;
    };
    if let Some(list) = step.strip_suffix("[]") {
        for item in members.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            set(item, rest, value);
        }
    } else if let Some((member, condition)) = step.split_once('{') {
        let (name, wanted) = condition.trim_end_matches('}').split_once('=').unwrap_or_default();
        if let Some(member) = members.get_mut(member).filter(|member| member[name] == wanted) {
            set(member, rest, value);
        }
    } else if let Some(member) = members.get_mut(step) {
        set(member, rest, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::Registry;

    #[test]
    fn every_value_is_json() {
        for kind in Registry::default().kinds() {
            let name = kind.builtin().unwrap();
            let all = shared(name).iter().flat_map(|(_, rows)| rows.iter()).chain(rows(name));
            for (path, value) in all.chain(POD_SPEC).chain(CONTAINER).chain(PROBE) {
                assert!(serde_json::from_str::<Value>(value).is_ok(), "{path}");
            }
        }
    }

    #[test]
    fn rows_fill_in_what_is_missing_and_nothing_else() {
        let mut object = json!({ "strategy": { "type": "Recreate" }, "list": [{ "a": 1 }, {}] });
        fill(
            &mut object,
            &[
                ("strategy{type=RollingUpdate}.rollingUpdate", "{}"),
                ("strategy.rollingUpdate.maxSurge", "1"),
                ("list[].a", "2"),
                ("absent.member", "3"),
            ],
        );
        assert_eq!(object, json!({ "strategy": { "type": "Recreate" }, "list": [{ "a": 1 }, { "a": 2 }] }));
    }
}
