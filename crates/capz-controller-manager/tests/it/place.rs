//! An API server with the kinds that the webhooks need, simulated or real.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use capz_api::crd::{KINDS, definition};
use capz_api::webhooks::{Task, registration};
use certificate_authority::CertificateAuthority;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A client for objects as JSON.
#[derive(Clone)]
pub struct Place(pub Client);

fn api(client: &Client, object: &Value) -> Api<DynamicObject> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let api_version = text(&object["apiVersion"]);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let kind = text(&object["kind"]);
    let plural = match kind.to_lowercase() {
        name if name.ends_with('y') => format!("{}ies", name.trim_end_matches('y')),
        name => format!("{name}s"),
    };
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, &kind), &plural);
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

impl Place {
    pub async fn create(&self, object: Value) -> Result<Value, kube::Error> {
        let made = api(&self.0, &object)
            .create(&PostParams::default(), &serde_json::from_value(object).unwrap())
            .await?;
        Ok(serde_json::to_value(made).unwrap())
    }

    /// Server-side applies an object; unknown members are errors.
    pub async fn apply(&self, object: Value) -> Result<Value, kube::Error> {
        let parameters = PatchParams::apply("test").force().validation_strict();
        let made = api(&self.0, &object).patch(name(&object), &parameters, &Patch::Apply(&object)).await?;
        Ok(serde_json::to_value(made).unwrap())
    }

    /// Server-side applies an object as a dry run.
    pub async fn try_apply(&self, object: Value) -> Result<Value, kube::Error> {
        let parameters = PatchParams { dry_run: true, ..PatchParams::apply("test").force() };
        let made = api(&self.0, &object).patch(name(&object), &parameters, &Patch::Apply(&object)).await?;
        Ok(serde_json::to_value(made).unwrap())
    }

    /// Creates an object as a dry run.
    pub async fn try_create(&self, object: Value) -> Result<Value, kube::Error> {
        let parameters = PostParams { dry_run: true, ..PostParams::default() };
        let made =
            api(&self.0, &object).create(&parameters, &serde_json::from_value(object).unwrap()).await?;
        Ok(serde_json::to_value(made).unwrap())
    }

    /// Patches an object as a dry run.
    pub async fn try_merge(&self, object: Value) -> Result<Value, kube::Error> {
        let parameters = PatchParams { dry_run: true, ..PatchParams::default() };
        let changed = api(&self.0, &object).patch(name(&object), &parameters, &Patch::Merge(&object)).await?;
        Ok(serde_json::to_value(changed).unwrap())
    }

    /// Patches an object, which is named by kind, namespace and name.
    pub async fn merge(&self, object: Value) -> Result<Value, kube::Error> {
        let changed = api(&self.0, &object)
            .patch(name(&object), &PatchParams::default(), &Patch::Merge(&object))
            .await?;
        Ok(serde_json::to_value(changed).unwrap())
    }

    /// Deletes an object, which is named by kind, namespace and name.
    pub async fn delete(&self, object: &Value) -> Result<Value, kube::Error> {
        api(&self.0, object).delete(name(object), &DeleteParams::default()).await?;
        Ok(Value::Null)
    }

    pub async fn get(&self, object: &Value) -> Option<Value> {
        let found = api(&self.0, object).get_opt(name(object)).await.unwrap();
        found.map(|found| serde_json::to_value(found).unwrap())
    }

    /// Like `get`, where the server may be unable to answer.
    pub async fn try_get(&self, object: &Value) -> Result<Option<Value>, kube::Error> {
        let found = api(&self.0, object).get_opt(name(object)).await?;
        Ok(found.map(|found| serde_json::to_value(found).unwrap()))
    }

    /// Creates the namespace and the definitions, including those of Cluster API that are read.
    pub async fn install(&self) {
        self.create(
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "capz-system" } }),
        )
        .await
        .unwrap();
        for kind in &KINDS {
            self.create(definition(kind)).await.unwrap();
        }
        for kind in ["Cluster", "Machine", "MachinePool"] {
            self.create(of_core(kind)).await.unwrap();
        }
        // The kinds are served a moment after their definitions are created.
        let served = async {
            for kind in KINDS.iter().map(|kind| (capz_api::crd::GROUP, "v1beta1", kind.name)).chain([
                ("cluster.x-k8s.io", "v1beta1", "Cluster"),
                ("cluster.x-k8s.io", "v1beta1", "Machine"),
                ("cluster.x-k8s.io", "v1beta1", "MachinePool"),
            ]) {
                let (group, version, kind) = kind;
                let any = json!({
                    "apiVersion": format!("{group}/{version}"), "kind": kind, "metadata": { "namespace": "default", "name": "none" },
                });
                while let Err(error) = api(&self.0, &any).list(&kube::api::ListParams::default()).await {
                    // Not served yet, or its storage is not ready yet.
                    let is_early =
                        matches!(&error, kube::Error::Api(status) if matches!(status.code, 404 | 429));
                    assert!(is_early, "{error}");
                    sleep(Duration::from_millis(100)).await;
                }
            }
        };
        timeout(Duration::from_secs(90), served).await.unwrap();
    }

    /// Registers the webhooks with this authority; `reach` changes their address.
    pub async fn register(&self, authority: &CertificateAuthority, reach: impl Fn(&mut Value)) {
        for task in [Task::Default, Task::Validate] {
            self.create(trusting(registration(task), authority, &reach)).await.unwrap();
        }
    }

    /// Registers the webhooks with another authority.
    pub async fn trust(&self, authority: &CertificateAuthority, reach: impl Fn(&mut Value)) {
        for task in [Task::Default, Task::Validate] {
            self.merge(trusting(registration(task), authority, &reach)).await.unwrap();
        }
    }
}

fn trusting(mut registration: Value, authority: &CertificateAuthority, reach: &impl Fn(&mut Value)) -> Value {
    for webhook in registration["webhooks"].as_array_mut().unwrap() {
        webhook["clientConfig"]["caBundle"] = json!(BASE64_STANDARD.encode(authority.certificate_pem()));
        reach(&mut webhook["clientConfig"]);
    }
    registration
}

/// A kind of Cluster API without a schema.
fn of_core(kind: &str) -> Value {
    let singular = kind.to_lowercase();
    let schema =
        json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{singular}s.cluster.x-k8s.io") },
        "spec": {
            "group": "cluster.x-k8s.io",
            "scope": "Namespaced",
            "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": format!("{singular}s"), "singular": singular },
            "versions": [{ "name": "v1beta1", "served": true, "storage": true, "schema": schema }],
        },
    })
}

/// An object of a kind of ours, in the namespace `default`.
pub fn infrastructure(kind: &str, name: &str, spec: Value) -> Value {
    of("infrastructure.cluster.x-k8s.io/v1beta1", kind, name, spec)
}

/// An object of Cluster API.
pub fn core(kind: &str, name: &str, spec: Value) -> Value {
    of("cluster.x-k8s.io/v1beta1", kind, name, spec)
}

fn of(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name, "namespace": "default" }, "spec": spec })
}

/// A cluster with only the required members.
pub fn cluster(name: &str) -> Value {
    let identity = json!({ "kind": "AzureClusterIdentity", "name": "identity" });
    infrastructure(
        "AzureCluster",
        name,
        json!({ "location": "eastus", "subscriptionID": "s-1", "identityRef": identity }),
    )
}

/// A refusal: status, message and the invalid paths.
pub fn refusal(outcome: Result<Value, kube::Error>) -> (u16, String, Vec<String>) {
    match outcome.unwrap_err() {
        kube::Error::Api(status) => {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            (status.code, status.message.clone(), causes.map(|cause| cause.field.clone()).collect())
        }
        other => panic!("{other}"),
    }
}
