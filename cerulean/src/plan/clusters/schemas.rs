//! Validates objects of ours against the schemas of their kinds, as an API server with our definitions does: unknown
//! members, types, enums, patterns, rules.

use anyhow::Context as _;
use capz_api::admission::set_defaults;
use capz_api::crd::{GROUP, KINDS, Kind, definition};
use capz_api::{Context, Lookup};
use http::Request;
use http::header::CONTENT_TYPE;
use kube::Client;
use kubernetes_simulator::{AdmissionHook, Decision, Kubernetes, Options};
use serde_json::{Value, json};
use simulated_cluster::manifests::describe_api_error;

use super::finder::Examples;
use crate::manifests::declared;
use crate::plan::values::{is_of, text, title};

/// The API server's objections to these objects, each with the object's title. Nothing is stored. Objects are completed
/// first, as webhooks do; what the webhooks refuse is not reported here.
///
/// # Errors
/// The definitions are not accepted.
pub async fn judge(objects: &[Value], subscription: Option<&str>) -> anyhow::Result<Vec<(String, String)>> {
    let kubernetes = Kubernetes::new(Options::default());
    // Each definition takes time; most manifests have few of the kinds.
    let is_used = |kind: &&Kind| objects.iter().any(|object| text(object, "/kind") == kind.name);
    for kind in KINDS.iter().filter(is_used) {
        kubernetes.create(definition(kind)).with_context(|| kind.name)?;
    }
    let subscription = subscription.map_or(Lookup::NotNeeded, |it| Lookup::Found(it.to_owned()));
    let complete = AdmissionHook::mutating("complete", move |request| {
        let context = Context { subscription: subscription.clone(), ..Context::default() };
        let object = request.object.unwrap_or_default();
        let completed = set_defaults(&request.kind, object, &context, &mut Examples);
        std::future::ready(completed.map_or_else(|_| Decision::allow(), Decision::replace))
    });
    kubernetes.admission_hook(complete.on(&["CREATE"], GROUP, &["*"]));
    let client = Client::new(kubernetes.router(), "default");
    let mut refused = Vec::new();
    for object in objects.iter().filter(|object| is_of(object, GROUP)) {
        let object = declared(object);
        let namespace = text(&object, "/metadata/namespace");
        // Another object may be there already.
        let _there = kubernetes
            .create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }));
        if let Err(why) = write(&client, &object).await {
            refused.push((title(&object), why));
        }
    }
    Ok(refused)
}

/// Writes it as a dry run.
async fn write(client: &Client, object: &Value) -> Result<(), String> {
    let (version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
    let unknown = || format!("no matches for kind \"{kind}\" in version \"{version}\"");
    let plural = Kind::named(kind).map(Kind::plural).ok_or_else(unknown)?;
    let namespace = text(object, "/metadata/namespace");
    let path = format!("/apis/{version}/namespaces/{namespace}/{plural}?dryRun=All&fieldValidation=Strict");
    let request = Request::post(path).header(CONTENT_TYPE, "application/json");
    let request = request.body(object.to_string().into_bytes()).map_err(|error| error.to_string())?;
    match client.request::<Value>(request).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Err(unknown()),
        Err(error) => Err(describe_api_error(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn problems_are_told_with_their_paths_as_an_api_server_tells_them() {
        let cluster = |spec: Value| {
            json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster",
                "metadata": { "name": "c", "namespace": "team" }, "spec": spec,
            })
        };
        let mut spec = json!({ "location": "westeurope", "identityRef": { "kind": "AzureClusterIdentity", "name": "i" } });
        assert_eq!(judge(&[cluster(spec.clone())], None).await.unwrap(), []);
        let mut old = cluster(spec.clone());
        old["apiVersion"] = "infrastructure.cluster.x-k8s.io/v1alpha4".into();
        let said = judge(&[old], None).await.unwrap();
        assert!(said[0].1.contains("no matches for kind \"AzureCluster\""), "{said:?}");

        spec["netwrkSpec"] = json!({});
        let said = judge(&[cluster(spec.clone())], None).await.unwrap();
        assert_eq!(said[0].0, "AzureCluster team/c");
        assert!(said[0].1.contains("strict decoding error: unknown field \"spec.netwrkSpec\""), "{said:?}");
        for (pointer, value, words) in [
            ("location", json!(7), "spec.location: Invalid value: \"integer\""),
            (
                "networkSpec",
                json!({ "privateDNSZone": "Outer" }),
                "spec.networkSpec.privateDNSZone: Unsupported value: \"Outer\"",
            ),
            (
                "networkSpec",
                json!({ "subnets": [{ "name": "a", "role": "nodes" }] }),
                "spec.networkSpec.subnets[0].role: Unsupported value: \"nodes\"",
            ),
        ] {
            let mut spec = json!({ "location": "westeurope", "identityRef": { "kind": "AzureClusterIdentity", "name": "i" } });
            spec[pointer] = value;
            let said = judge(&[cluster(spec)], None).await.unwrap();
            assert!(said.iter().any(|(_, why)| why.contains(words)), "{words}: {said:?}");
        }
    }
}
