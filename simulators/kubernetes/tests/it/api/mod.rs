//! The API server through kube's client, in-process, on paused time.

mod apply;
mod conversion;
mod crud;
mod custom;
mod deletion;
mod discovery;
mod faults;
mod fields;
mod hooks;
mod https;
mod kinds;
mod kubectl;
mod lifecycle;
mod lists;
mod ports;
mod raw;
mod state;
mod watches;

use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::{Api, Client};
use kubernetes_simulator::{Kubernetes, Options};
use serde_json::{Value, json};

pub fn kubernetes() -> Kubernetes {
    Kubernetes::new(Options::default())
}

pub fn client(kubernetes: &Kubernetes) -> Client {
    Client::new(kubernetes.router(), "default")
}

pub fn config_maps(kubernetes: &Kubernetes) -> Api<ConfigMap> {
    Api::namespaced(client(kubernetes), "default")
}

pub fn services(kubernetes: &Kubernetes) -> Api<Service> {
    Api::namespaced(client(kubernetes), "default")
}

pub fn config_map(name: &str, labels: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default", "labels": labels },
        "data": { "key": "value" },
    })
}

pub fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "type": "LoadBalancer", "selector": { "app": "web" }, "ports": [{ "port": 80 }] },
    })
}

pub fn typed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// The Status of a failed call.
pub fn status<T: std::fmt::Debug>(result: kube::Result<T>) -> kube::core::Status {
    match result.unwrap_err() {
        kube::Error::Api(status) => *status,
        other => panic!("no status: {other:?}"),
    }
}
