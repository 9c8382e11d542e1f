//! Services: their changes of type, cluster addresses and node ports.

mod allocation;
mod defaults;
mod shape;
mod validation;

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Service;

use self::allocation::{allocations_of, complete, named_families};
use self::defaults::{default, default_as_read, drop_unused, keep_allocated};
use crate::kinds::prelude::*;
use crate::kinds::shared::allocators::Allocators;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["svc"],
    categories: &["all"],
    etcd_directory: Some("services/specs"),
    status: StatusRule::Subresource,
    fields: &["spec.clusterIP", "spec.type"],
    deletion_returns_object: true,
    name: dns_label,
    columns: COLUMNS,
    dropped_if_empty: &[
        ("/spec", &["selector", "ports", "externalIPs", "loadBalancerSourceRanges"]),
        ("/spec", &["clusterIPs", "ipFamilies", "sessionAffinityConfig"]),
        ("/status", &["conditions"]),
        ("/status/loadBalancer", &["ingress"]),
    ],
    decode: default_as_read,
    admit: |old, object, allocators, causes| match old {
        None => on_create(object, allocators, causes),
        Some(old) => on_update(old, object, allocators, causes),
    },
    allocations: allocations_of,
    example: r#"{"spec": {"ports": [{"port": 80}], "selector": {"app": "a"}}}"#,
    ..BuiltinKind::namespaced::<Service>()
};

const COLUMNS: &[Column] = &[
    NAME,
    Column::text_or("Type", "/spec/type", "ClusterIP"),
    Column::text_or("Cluster-IP", "/spec/clusterIP", NONE),
    Column::derived("External-IP", external_address),
    Column::derived("Port(s)", service_ports),
    AGE,
    LABELS_SELECTED,
];

fn service_ports(object: &Value) -> String {
    let ports: Vec<String> = list_at(object, "/spec/ports")
        .iter()
        .map(|port| {
            let protocol = or(text_at(port, "/protocol"), "TCP");
            match (number_at(port, "/port"), number_at(port, "/nodePort")) {
                (port, 0) => format!("{port}/{protocol}"),
                (port, node_port) => format!("{port}:{node_port}/{protocol}"),
            }
        })
        .collect();
    or(&ports.join(","), NONE).to_owned()
}

fn external_address(object: &Value) -> String {
    let declared = list_at(object, "/spec/externalIPs").iter().filter_map(Value::as_str);
    match text_at(object, "/spec/type") {
        "ExternalName" => text_at(object, "/spec/externalName").to_owned(),
        "LoadBalancer" => {
            let given: BTreeSet<&str> = list_at(object, "/status/loadBalancer/ingress")
                .iter()
                .map(|entry| or(text_at(entry, "/ip"), text_at(entry, "/hostname")))
                .filter(|address| !address.is_empty())
                .collect();
            let all: Vec<&str> = given.into_iter().chain(declared).collect();
            or(&all.join(","), "<pending>").to_owned()
        }
        _ => or(&declared.collect::<Vec<_>>().join(","), NONE).to_owned(),
    }
}

fn on_create(object: &mut Value, allocators: &mut Allocators, causes: &mut Causes) {
    let named = named_families(object);
    default(object, allocators.is_dual_stack());
    validation::validate(object, causes);
    complete(None, object, named, allocators, causes);
}

fn on_update(old: &Value, object: &mut Value, allocators: &mut Allocators, causes: &mut Causes) {
    keep_allocated(old, object);
    drop_unused(old, object);
    let named = named_families(object);
    default(object, allocators.is_dual_stack());
    validation::validate(object, causes);
    causes.note(validation::validate_update(old, object));
    complete(Some(old), object, named, allocators, causes);
}
