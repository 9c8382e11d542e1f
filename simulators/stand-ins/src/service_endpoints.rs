//! Endpoints of `v1`: the addresses of the pods that a Service selects, as `kubectl get endpoints` shows them. Services
//! that select no pod have none, even if their EndpointSlices contain simulated pods.

use serde_json::{Value, json};

use crate::objects::{Action, Kind, Round, is_deleting, is_ready, key, list, name, number, owner, text};
use crate::pod::has_ended;

/// From this number on `endpoints.kubernetes.io/over-capacity` is set, and further addresses are left out.
const MAX_ADDRESSES: usize = 1000;

/// Reconciles the Endpoints of all Services that select pods.
pub(crate) fn keep_all(round: &mut Round<'_>) {
    for service in round.objects.of(Kind::Service).filter(|one| !is_deleting(one)) {
        let selector = service["spec"]["selector"].as_object().filter(|selector| !selector.is_empty());
        if selector.is_some() && service["spec"]["type"] != "ExternalName" {
            keep(round, service);
        }
    }
}

fn keep(round: &mut Round<'_>, service: &Value) {
    let objects = round.objects;
    let selected = |pod: &&Value| {
        let labels = &pod["metadata"]["labels"];
        let mut wanted = service["spec"]["selector"].as_object().into_iter().flatten();
        wanted.all(|(label, value)| labels[label] == *value)
    };
    let pods = objects.within(Kind::Pod, text(&service["metadata"]["namespace"])).filter(selected);
    let pods: Vec<&Value> = pods
        .filter(|pod| !pod["status"]["podIP"].is_null() && !has_ended(pod) && !is_deleting(pod))
        .take(MAX_ADDRESSES)
        .collect();
    let known = objects.get(Kind::Endpoints, &key(service));
    if pods.is_empty() && known.is_none() {
        return;
    }
    let subsets = subsets(service, &pods);
    match known {
        Some(same) if list(&same["subsets"]) == subsets => {}
        Some(other) => {
            round.act(Action::Patch(Kind::Endpoints, key(other), json!({"subsets": subsets})));
        }
        None => round.act(Action::Create(
            Kind::Endpoints,
            json!({"apiVersion": "v1", "kind": "Endpoints",
                "metadata": {"name": name(service), "namespace": service["metadata"]["namespace"],
                    "labels": service["metadata"]["labels"],
                    "ownerReferences": [owner(Kind::Service, service)]},
                "subsets": subsets}),
        )),
    }
}

fn subsets(service: &Value, pods: &[&Value]) -> Vec<Value> {
    if pods.is_empty() {
        return Vec::new();
    }
    let address = |pod: &&&Value| {
        json!({"ip": pod["status"]["podIP"], "nodeName": pod["spec"]["nodeName"],
            "targetRef": {"kind": "Pod", "namespace": pod["metadata"]["namespace"], "name": pod["metadata"]["name"],
                "uid": pod["metadata"]["uid"]}})
    };
    let of = |ready: bool| {
        let mut addresses: Vec<Value> =
            pods.iter().filter(|pod| is_ready(pod) == ready).map(|pod| address(&pod)).collect();
        addresses.sort_by_key(|one| text(&one["ip"]).to_owned());
        addresses
    };
    let ports: Vec<Value> = list(&service["spec"]["ports"])
        .iter()
        .map(|port| {
            let mut entry = json!({"port": target(port, pods), "protocol": port["protocol"]});
            if !port["name"].is_null() {
                entry["name"] = port["name"].clone();
            }
            entry
        })
        .collect();
    let mut subset = json!({"ports": ports});
    for (member, addresses) in [("addresses", of(true)), ("notReadyAddresses", of(false))] {
        if !addresses.is_empty() {
            subset[member] = addresses.into();
        }
    }
    vec![subset]
}

/// The port of a Service's pods: its number, or the number of the pods' port with its name.
fn target(port: &Value, pods: &[&Value]) -> u64 {
    let target = &port["targetPort"];
    let by_name = || {
        let containers = pods.iter().flat_map(|pod| list(&pod["spec"]["containers"]));
        let mut ports = containers.flat_map(|container| list(&container["ports"]));
        ports.find(|one| one["name"] == *target).map(|one| number(&one["containerPort"]))
    };
    match target.as_u64() {
        Some(number) if number > 0 => number,
        _ => by_name().unwrap_or_else(|| number(&port["port"])),
    }
}
