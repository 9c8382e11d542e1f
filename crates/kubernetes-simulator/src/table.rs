//! What `kubectl get` prints: kube-apiserver answers a request for
//! `application/json;as=Table;v=v1;g=meta.k8s.io` with columns and cells of its own making.

mod cells;

use jiff::Timestamp;
use serde_json::{Value, json};

/// Shown always, or only with `-o wide`.
const NARROW: u8 = 0;
const WIDE: u8 = 1;

type Column = (&'static str, &'static str, u8);

const NAME: Column = ("Name", "string", NARROW);
const AGE: Column = ("Age", "string", NARROW);

const SERVICE: &[Column] = &[
    NAME,
    ("Type", "string", NARROW),
    ("Cluster-IP", "string", NARROW),
    ("External-IP", "string", NARROW),
    ("Port(s)", "string", NARROW),
    AGE,
    ("Selector", "string", WIDE),
];
const NODE: &[Column] = &[
    NAME,
    ("Status", "string", NARROW),
    ("Roles", "string", NARROW),
    AGE,
    ("Version", "string", NARROW),
    ("Internal-IP", "string", WIDE),
    ("External-IP", "string", WIDE),
    ("OS-Image", "string", WIDE),
    ("Kernel-Version", "string", WIDE),
    ("Container-Runtime", "string", WIDE),
];
const POD: &[Column] = &[
    NAME,
    ("Ready", "string", NARROW),
    ("Status", "string", NARROW),
    ("Restarts", "string", NARROW),
    AGE,
    ("IP", "string", WIDE),
    ("Node", "string", WIDE),
    ("Nominated Node", "string", WIDE),
    ("Readiness Gates", "string", WIDE),
];
const EVENT: &[Column] = &[
    ("Last Seen", "string", NARROW),
    ("Type", "string", NARROW),
    ("Reason", "string", NARROW),
    ("Object", "string", NARROW),
    ("Subobject", "string", WIDE),
    ("Source", "string", WIDE),
    ("Message", "string", NARROW),
    ("First Seen", "string", WIDE),
    ("Count", "string", WIDE),
    ("Name", "string", WIDE),
];
const LEASE: &[Column] = &[NAME, ("Holder", "string", NARROW), AGE];
const NAMESPACE: &[Column] = &[NAME, ("Status", "string", NARROW), AGE];
const SECRET: &[Column] = &[NAME, ("Type", "string", NARROW), ("Data", "string", NARROW), AGE];
const CONFIG_MAP: &[Column] = &[NAME, ("Data", "string", NARROW), AGE];
const ENDPOINTS: &[Column] = &[NAME, ("Endpoints", "string", NARROW), AGE];
const ENDPOINT_SLICE: &[Column] = &[
    NAME,
    ("AddressType", "string", NARROW),
    ("Ports", "string", NARROW),
    ("Endpoints", "string", NARROW),
    AGE,
];
const DEPLOYMENT: &[Column] = &[
    NAME,
    ("Ready", "string", NARROW),
    ("Up-to-date", "string", NARROW),
    ("Available", "string", NARROW),
    AGE,
    ("Containers", "string", WIDE),
    ("Images", "string", WIDE),
    ("Selector", "string", WIDE),
];
const OTHER: &[Column] = &[NAME, AGE];

fn columns_of(kind: &str) -> &'static [Column] {
    match kind {
        "Service" => SERVICE,
        "Node" => NODE,
        "Pod" => POD,
        "Event" => EVENT,
        "Lease" => LEASE,
        "Namespace" => NAMESPACE,
        "Secret" => SECRET,
        "ConfigMap" => CONFIG_MAP,
        "Endpoints" => ENDPOINTS,
        "EndpointSlice" => ENDPOINT_SLICE,
        "Deployment" => DEPLOYMENT,
        _ => OTHER,
    }
}

/// The `columnDefinitions` of the kind's Table; priority 1 is what `-o wide` adds.
pub fn columns(kind: &str) -> Value {
    let columns = columns_of(kind).iter().map(|(name, form, priority)| {
        let format = if *name == "Name" { "name" } else { "" };
        json!({"name": name, "type": form, "format": format, "description": "", "priority": priority})
    });
    Value::Array(columns.collect())
}

/// The cells of one object, one for each of [`columns`]; ages are counted up to `now`.
pub fn row(kind: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = cells::text(object, "/metadata/name").into();
    let age = cells::age(object.pointer("/metadata/creationTimestamp"), now).into();
    match kind {
        "Service" => cells::service(object, name, age),
        "Node" => cells::node(object, name, age),
        "Pod" => cells::pod(object, name, age),
        "Event" => cells::event(object, name, now),
        "Lease" => vec![name, cells::text(object, "/spec/holderIdentity").into(), age],
        "Namespace" => vec![name, cells::text(object, "/status/phase").into(), age],
        "Secret" => {
            vec![name, cells::text(object, "/type").into(), cells::count(object, &["/data"]).into(), age]
        }
        "ConfigMap" => vec![name, cells::count(object, &["/data", "/binaryData"]).into(), age],
        "Endpoints" => vec![name, cells::endpoints(object).into(), age],
        "EndpointSlice" => cells::endpoint_slice(object, name, age),
        "Deployment" => cells::deployment(object, name, age),
        _ => vec![name, age],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: &str, object: Value) -> Vec<String> {
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        let cells = row(kind, &object, now);
        assert_eq!(cells.len(), columns(kind).as_array().unwrap().len(), "a cell for each column of {kind}");
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
        assert_eq!(shown("Widget", json!({"metadata": {"name": "w"}})), ["w", "<unknown>"]);
    }
}
