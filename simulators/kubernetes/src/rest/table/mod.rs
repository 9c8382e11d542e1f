//! The tables of `kubectl get`: kube-apiserver answers a request for `application/json;as=Table;v=v1;g=meta.k8s.io`
//! with columns and cells of its own.

mod custom;
mod json_path;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::shared::columns::Column;
use crate::registry::Kind;

fn columns_of(kind: &Kind) -> &'static [Column] {
    kind.builtin().map(|builtin| builtin.columns).unwrap_or_default()
}

/// The `columnDefinitions` of the kind's Table; `-o wide` adds those with priority 1.
pub(crate) fn columns(kind: &Kind) -> Value {
    if kind.is_custom() {
        return custom::columns(kind);
    }
    let columns = columns_of(kind).iter().map(|column| {
        let format = if column.name == "Name" { "name" } else { "" };
        json!({
            "name": column.name, "type": column.form, "format": format, "description": "", "priority": column.priority
        })
    });
    Value::Array(columns.collect())
}

/// The cells of one object, one for each of [`columns`]; ages are counted up to `now`.
pub(crate) fn row(kind: &Kind, object: &Value, now: Timestamp) -> Vec<Value> {
    if kind.is_custom() {
        return custom::row(kind, object, now);
    }
    columns_of(kind).iter().map(|column| column.of(object, now)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: &str, object: Value) -> Vec<String> {
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        let kind = crate::registry::Registry::default().by_name(kind).unwrap();
        let cells = row(&kind, &object, now);
        cells.into_iter().map(|cell| cell.as_str().map_or(cell.to_string(), str::to_owned)).collect()
    }

    #[test]
    fn service_without_and_with_its_address() {
        let mut service = json!({
            "metadata": {"name": "web", "creationTimestamp": "2026-01-01T00:08:30Z"},
            "spec": {
                "type": "LoadBalancer", "clusterIP": "10.0.1.2", "clusterIPs": ["10.0.1.2"],
                "ports": [
                    {"port": 80, "nodePort": 30080, "protocol": "TCP"},
                    {"port": 53, "protocol": "UDP"},
                ],
                "selector": {"tier": "front", "app": "web"},
            },
            "status": {"loadBalancer": {}},
        });
        assert_eq!(
            shown("Service", service.clone()),
            [
                "web",
                "LoadBalancer",
                "10.0.1.2",
                "<pending>",
                "80:30080/TCP,53/UDP",
                "90s",
                "app=web,tier=front"
            ]
        );
        service["status"]["loadBalancer"] = json!({"ingress": [{"ip": "20.0.0.9"}, {"ip": "20.0.0.8"}]});
        assert_eq!(shown("Service", service)[3], "20.0.0.8,20.0.0.9");
        let named =
            json!({"metadata": {"name": "x"}, "spec": {"type": "ExternalName", "externalName": "a.b"}});
        assert_eq!(
            shown("Service", named),
            ["x", "ExternalName", "<none>", "a.b", "<none>", "<unknown>", "<none>"]
        );
    }

    #[test]
    fn node_status_and_roles() {
        let node = |ready: &str| {
            json!({
                "metadata": {
                    "name": "n0", "creationTimestamp": "2026-01-01T00:00:00Z",
                    "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "agent"},
                },
                "spec": {"unschedulable": true},
                "status": {
                    "conditions": [{"type": "Ready", "status": ready}],
                    "addresses": [{"type": "InternalIP", "address": "10.1.0.4"}],
                    "nodeInfo": {"kubeletVersion": "v1.33.1", "osImage": "Linux"},
                },
            })
        };
        assert_eq!(
            shown("Node", node("True")),
            [
                "n0",
                "Ready,SchedulingDisabled",
                "agent,worker",
                "10m",
                "v1.33.1",
                "10.1.0.4",
                "<none>",
                "Linux",
                "<unknown>",
                "<unknown>"
            ]
        );
        assert_eq!(shown("Node", node("Unknown"))[1], "NotReady,SchedulingDisabled");
        assert_eq!(shown("Node", json!({"metadata": {"name": "n"}}))[1], "Unknown");
    }

    #[test]
    fn events_of_both_groups() {
        let core = json!({
            "metadata": {"name": "web.1"}, "type": "Warning", "reason": "SyncLoadBalancerFailed",
            "message": "Error syncing\n", "involvedObject": {"kind": "Service", "name": "web"},
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:09:50Z", "count": 4,
            "source": {"component": "service-controller"},
        });
        let expected = [
            "10s",
            "Warning",
            "SyncLoadBalancerFailed",
            "service/web",
            "",
            "service-controller",
            "Error syncing",
            "10m",
            "4",
            "web.1",
        ];
        assert_eq!(shown("Event", core), expected);
        let new = json!({
            "metadata": {"name": "web.2"}, "type": "Normal", "reason": "R", "note": "n", "action": "A",
            "regarding": {"kind": "Service", "name": "web"}, "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "c", "reportingInstance": "i",
            "series": {"count": 3, "lastObservedTime": "2026-01-01T00:09:00Z"},
        });
        assert_eq!(
            shown("Event", new),
            ["60s", "Normal", "R", "service/web", "", "c, i", "n", "10m", "3", "web.2"]
        );
    }

    #[test]
    fn the_rest() {
        let slice = json!({
            "metadata": {"name": "web-x"}, "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"]}, {"addresses": ["10.0.0.3"]},
                {"addresses": ["10.0.0.4"]}],
            "ports": [{"port": 80}, {"port": 443}],
        });
        assert_eq!(
            shown("EndpointSlice", slice),
            ["web-x", "IPv4", "80,443", "10.0.0.1,10.0.0.2,10.0.0.3 + 1 more...", "<unknown>"]
        );
        let secret = json!({"metadata": {"name": "s"}, "type": "Opaque", "data": {"a": "", "b": ""}});
        assert_eq!(shown("Secret", secret), ["s", "Opaque", "2", "<unknown>"]);
        let pod = json!({
            "metadata": {"name": "p"}, "spec": {"containers": [{}, {}], "nodeName": "n0"},
            "status": {"phase": "Running", "podIP": "10.2.0.1", "containerStatuses": [
                {"ready": true, "restartCount": 2, "state": {"running": {}}},
                {"ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
            ]},
        });
        assert_eq!(
            shown("Pod", pod),
            ["p", "1/2", "CrashLoopBackOff", "2", "<unknown>", "10.2.0.1", "n0", "<none>", "<none>"]
        );
        let deployment = json!({
            "metadata": {"name": "d"}, "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}},
                "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
            "status": {"readyReplicas": 1},
        });
        assert_eq!(shown("Deployment", deployment), ["d", "1/2", "0", "0", "<unknown>", "c", "i", "a=b"]);
    }

    #[test]
    fn kinds_of_every_group() {
        let template = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
        let created = json!({"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"});
        for (kind, members, expected) in [
            (
                "StatefulSet",
                json!({"spec": {"replicas": 3, "template": template}, "status": {"readyReplicas": 2}}),
                "x 2/3 10m c i",
            ),
            (
                "DaemonSet",
                json!({"spec": {"template": template, "selector": {"matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["b", "c"]}, {"key": "d", "operator": "Exists"}]}},
                    "status": {"numberReady": 2}}),
                "x 0 0 2 0 0 <none> 10m c i a in (b,c),d",
            ),
            (
                "Job",
                json!({"spec": {"completions": 2, "template": template}, "status": {"succeeded": 1,
                    "startTime": "2026-01-01T00:09:00Z"}}),
                "x Running 1/2 60s 10m c i <none>",
            ),
            (
                "Job",
                json!({"spec": {"parallelism": 3, "template": template}, "status": {
                    "startTime": "2026-01-01T00:09:00Z", "completionTime": "2026-01-01T00:09:05Z",
                    "conditions": [{"type": "Complete", "status": "True"}]}}),
                "x Complete 0/1 of 3 5s 10m c i <none>",
            ),
            (
                "CronJob",
                json!({"spec": {"schedule": "* * * * *", "suspend": false, "jobTemplate": {"spec": {"template": template}}}}),
                "x * * * * * <none> False 0 <none> 10m c i <none>",
            ),
            (
                "HorizontalPodAutoscaler",
                json!({"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "minReplicas": 1, "maxReplicas": 5,
                    "metrics": [{"type": "Resource", "resource": {"name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 80}}}]}}),
                "x Deployment/d cpu: <unknown>/80% 1 5 0 10m",
            ),
            (
                "Ingress",
                json!({"spec": {"rules": [{"host": "a"}, {"host": "b"}], "tls": [{}]},
                    "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}),
                "x <none> a,b 1.2.3.4 80, 443 10m",
            ),
            (
                "RoleBinding",
                json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"},
                    {"kind": "ServiceAccount", "namespace": "n", "name": "s"}]}),
                "x Role/r 10m u  n/s",
            ),
            ("ClusterRole", json!({}), "x 2026-01-01T00:00:00Z"),
            (
                "PersistentVolumeClaim",
                json!({"spec": {"volumeName": "v", "storageClassName": "s", "volumeMode": "Filesystem"}, "status":
                    {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}}),
                "x Bound v 1Gi RWO,ROX s <unset> 10m Filesystem",
            ),
            (
                "PersistentVolume",
                json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"],
                    "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "n", "name": "c"}},
                    "status": {"phase": "Released"}}),
                "x 1Gi RWX Retain Released n/c  <unset>  10m <unset>",
            ),
            (
                "StorageClass",
                json!({"provisioner": "p", "reclaimPolicy": "Retain", "allowVolumeExpansion": true}),
                "x p Retain Immediate true 10m",
            ),
            (
                "CSIDriver",
                json!({"spec": {"attachRequired": true, "volumeLifecycleModes": ["Persistent", "Ephemeral"]}}),
                "x true false false <unset> false Persistent,Ephemeral 10m",
            ),
            (
                "ResourceQuota",
                json!({"status": {"hard": {"pods": "4", "limits.cpu": "2"}, "used": {"pods": "1"}}}),
                "x pods: 1/4 limits.cpu: 0/2 10m",
            ),
            (
                "PodDisruptionBudget",
                json!({"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}}),
                "x 50% N/A 1 10m",
            ),
            (
                "APIService",
                json!({"spec": {"service": {"namespace": "n", "name": "s"}},
                    "status": {"conditions": [{"type": "Available", "status": "False", "reason": "Gone"}]}}),
                "x n/s False (Gone) 10m",
            ),
        ] {
            let mut object = members;
            object["metadata"] = created.clone();
            assert_eq!(shown(kind, object).join(" "), expected, "{kind}");
        }
    }

    #[test]
    fn a_custom_kind_is_none_of_the_built_in_ones() {
        let mut registry = crate::registry::Registry::default();
        registry.register_definition(&json!({"spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "services", "kind": "Service"}, "versions": [{"name": "v1", "served": true}]}}));
        let kind = registry.by_type("example.com/v1", "Service").unwrap();
        assert_eq!(columns(&kind).as_array().unwrap().len(), 2);
    }
}
