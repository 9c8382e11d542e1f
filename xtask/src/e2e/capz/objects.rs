//! Objects as JSON, through a client of the Kubernetes API.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::Instant;

/// The time limit for a server to serve a kind that was just defined, or for a program to serve its webhooks.
const READY: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);

/// The objects of a kind, all or in a namespace.
pub fn api(client: &Client, api_version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Creates an object, with retries: for a moment after a definition was created, the server may not serve the kind, or
/// its storage may not be ready, and after webhooks were registered, it may not reach them.
///
/// # Errors
/// The server's error.
pub async fn create(client: &Client, object: &Value) -> anyhow::Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let parsed: DynamicObject = serde_json::from_value(object.clone())?;
    let api = api(client, &version, &kind, object["metadata"]["namespace"].as_str());
    let deadline = Instant::now() + READY;
    loop {
        match api.create(&PostParams::default(), &parsed).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if is_passing(&status) && Instant::now() < deadline => {
                tokio::time::sleep(LOOK).await;
            }
            Err(error) => return Err(error).with_context(|| format!("{kind} {}", parsed.name_any())),
        }
    }
}

fn is_passing(status: &kube::core::Status) -> bool {
    matches!(status.code, 404 | 429)
        || (status.code == 500 && status.message.contains("failed calling webhook"))
}

/// Creates the definition of a kind, and waits until the server reports it as established: programs check this when
/// they start.
///
/// # Errors
/// The server's error, or the kind is not established in time.
pub async fn define(client: &Client, definition: &Value) -> anyhow::Result<()> {
    create(client, definition).await?;
    let spec = &definition["spec"];
    let group = spec["group"].as_str().unwrap_or_default();
    let deadline = Instant::now() + READY;
    for version in spec["versions"].as_array().into_iter().flatten().filter(|it| it["served"] == true) {
        let version = format!("{group}/{}", version["name"].as_str().unwrap_or_default());
        let is_it = |one: &str| spec["names"]["plural"] == one;
        loop {
            let found = client.list_api_group_resources(&version).await;
            if found.is_ok_and(|found| found.resources.iter().any(|one| is_it(&one.name))) {
                break;
            }
            ensure!(Instant::now() < deadline, "{version} {} is not served", spec["names"]["plural"]);
            tokio::time::sleep(LOOK).await;
        }
    }
    Ok(())
}

/// The definition of a kind that accepts any object.
pub fn definition_of_anything(group: &str, version: &str, kind: &str) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": { "group": group, "scope": "Namespaced",
            "names": { "kind": kind, "plural": plural, "singular": singular, "listKind": format!("{kind}List") },
            "versions": [{ "name": version, "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }] },
    })
}

/// Creates an object, without retries.
///
/// # Errors
/// The server's error.
pub async fn create_now(client: &Client, object: &Value) -> anyhow::Result<()> {
    let parsed: DynamicObject = serde_json::from_value(object.clone())?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let namespace = object["metadata"]["namespace"].as_str();
    let api = api(client, &text(&object["apiVersion"]), &text(&object["kind"]), namespace);
    api.create(&PostParams::default(), &parsed).await?;
    Ok(())
}

/// An object of a namespace, in this version.
///
/// # Errors
/// The server's error.
pub async fn get(
    client: &Client,
    version: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Value> {
    let found = api(client, version, kind, Some(namespace)).get(name).await;
    Ok(serde_json::to_value(found.with_context(|| format!("{kind} {name}"))?)?)
}

/// Deletes the object with the same kind and name, if it exists.
///
/// # Errors
/// The server's error.
pub async fn delete(client: &Client, object: &Value) -> anyhow::Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (version, kind, name) =
        (text(&object["apiVersion"]), text(&object["kind"]), text(&object["metadata"]["name"]));
    let api = api(client, &version, &kind, object["metadata"]["namespace"].as_str());
    match api.delete(&name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        done => done.map(drop).with_context(|| format!("{kind} {name}")),
    }
}

/// Applies a merge patch to an object in the namespace `default`.
///
/// # Errors
/// The server's error.
pub async fn merge(
    client: &Client,
    (version, kind): (&str, &str),
    name: &str,
    patch: &Value,
) -> anyhow::Result<()> {
    let patched = api(client, version, kind, Some("default"))
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await;
    patched.map(drop).with_context(|| format!("{kind} {name}"))
}

/// The objects in a YAML file.
///
/// # Errors
/// It cannot be read.
pub fn read(file: &Path) -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let objects: Vec<Value> =
        serde_saphyr::from_multiple(&text).with_context(|| file.display().to_string())?;
    Ok(objects.into_iter().filter(|object| !object.is_null()).collect())
}

/// The objects in all YAML files of a folder, in the order of the files' names.
///
/// # Errors
/// There are no files, or one cannot be read.
pub fn read_all(folder: &Path) -> anyhow::Result<Vec<Value>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        bail!("{}: there is no file .yaml in it", folder.display());
    }
    let objects: Vec<Vec<Value>> = files.iter().map(|file| read(file)).collect::<anyhow::Result<_>>()?;
    Ok(objects.concat())
}
