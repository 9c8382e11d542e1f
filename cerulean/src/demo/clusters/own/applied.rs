//! The user's manifests, applied as `kubectl apply` does, with their prerequisites.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::Client;
use serde_json::{Value, json};
use simulated_cluster::Shape;
use simulated_cluster::manifests::{self, ManifestError};

use crate::manifests::{LAST_APPLIED, Manifest, declared};
use crate::screen::{Screen, Tone};

use super::report::title;

/// The password of service principals without one.
const PASSWORD: &str = "of the simulated Entra";
/// Kinds that others depend on: a cluster without its identity would first report an error and be created later.
const FIRST: [&str; 3] = ["Namespace", "Secret", "AzureClusterIdentity"];
/// The number of attempts for a manifest if there is no answer.
const ATTEMPTS: u32 = 4;
/// The interval between them.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The annotation of whole objects of Azure Service Operator that names the Secret with their credential.
const CREDENTIAL: &str = "serviceoperator.azure.com/credential-from";
/// Kinds of identities with a client secret.
const BY_SECRET: [&str; 2] = ["ServicePrincipal", "ManualServicePrincipal"];

/// Why the demo does not accept an object that contains no mistake, and what to do instead; `None` for all others.
fn refusal(object: &Value) -> Option<&'static str> {
    let text = |member: &str| object[member].as_str().unwrap_or_default();
    let (group, kind) = (text("apiVersion").split('/').next().unwrap_or_default(), text("kind"));
    let of_class = kind == "ClusterClass" || (kind == "Cluster" && object["spec"]["topology"].is_object());
    (group == "cluster.x-k8s.io" && of_class).then_some(
        "the demo does not support ClusterClasses: generate a flavor without a class \
         (`clusterctl generate cluster` without --flavor, or with --flavor aks or aks-aso)",
    )
}

/// Prerequisites that manifests name and do not contain, and that would exist in a real cluster: namespaces, and the
/// Secrets of service principals and of Azure Service Operator's credentials. The simulated Entra accepts any secret of
/// an identity.
pub fn presupposed(all: &[Manifest]) -> Vec<Value> {
    let holds = |kind: &str, namespace: &str, name: &str| {
        all.iter().any(|it| {
            it.kind() == kind
                && it.text("/metadata/name") == name
                && (namespace.is_empty() || namespace_of(&it.object) == namespace)
        })
    };
    let is_known = |namespace: &str| namespace == "default" || namespace.starts_with("kube-");
    let mut namespaces: BTreeSet<&str> = all
        .iter()
        .map(|it| it.text("/metadata/namespace"))
        .filter(|namespace| !namespace.is_empty())
        .collect();
    let mut secrets = BTreeSet::new();
    for identity in all.iter().filter(|it| it.kind() == "AzureClusterIdentity") {
        let name = identity.text("/spec/clientSecret/name");
        let namespace = match identity.text("/spec/clientSecret/namespace") {
            "" => namespace_of(&identity.object),
            named => named,
        };
        if BY_SECRET.contains(&identity.text("/spec/type"))
            && !name.is_empty()
            && !holds("Secret", namespace, name)
        {
            namespaces.insert(namespace);
            secrets.insert((namespace, name));
        }
    }
    let mut credentials = BTreeSet::new();
    for manifest in all {
        let namespace = namespace_of(&manifest.object);
        let resources = manifest.object.pointer("/spec/resources").and_then(Value::as_array);
        for resource in resources.into_iter().flatten() {
            let name = resource["metadata"]["annotations"][CREDENTIAL].as_str().unwrap_or_default();
            if !name.is_empty() && !name.contains('/') && !holds("Secret", namespace, name) {
                credentials.insert((namespace, name));
            }
        }
    }
    namespaces.retain(|namespace| !is_known(namespace) && !holds("Namespace", "", namespace));
    let namespaces = namespaces
        .into_iter()
        .map(|name| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }));
    let secret = |(namespace, name): (&str, &str), data: Value| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": namespace },
            "stringData": data,
        })
    };
    let passwords = json!({ "clientSecret": PASSWORD });
    let secrets = secrets.into_iter().map(|at| secret(at, passwords.clone()));
    let shape = Shape::default();
    let credential = json!({
        "AZURE_SUBSCRIPTION_ID": shape.subscription, "AZURE_TENANT_ID": shape.tenant,
        "AZURE_CLIENT_ID": shape.client_id, "AZURE_CLIENT_SECRET": PASSWORD,
    });
    let credentials = credentials.into_iter().map(|at| secret(at, credential.clone()));
    namespaces.chain(secrets).chain(credentials).collect()
}

fn namespace_of(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().filter(|namespace| !namespace.is_empty()).unwrap_or("default")
}

/// The number of manifests that were not applied.
#[derive(Debug, Default)]
pub struct Left {
    /// Refused, because something is wrong with them.
    pub refused: usize,
    /// Not supported here.
    pub not_served: usize,
    /// No answer, for example from a webhook on a busy machine.
    pub unanswered: usize,
}

/// Applies manifests in their order, prerequisites first, and prints the result of each.
pub async fn apply(screen: Screen, client: &Client, all: &[Manifest]) -> Left {
    for object in presupposed(all) {
        let title = title(&object);
        match manifests::apply_strictly(client, &object).await {
            Ok(_) => screen.line(format_args!("  {title} is not in the manifests: made for them")),
            Err(problem) => refused(screen, "", &title, &problem.to_string()),
        }
    }
    let mut all: Vec<&Manifest> = all.iter().collect();
    all.sort_by_key(|manifest| FIRST.iter().position(|kind| *kind == manifest.kind()).unwrap_or(FIRST.len()));
    let mut left = Left::default();
    all.retain(|manifest| {
        let Some(words) = refusal(&manifest.object) else { return true };
        let mark = screen.paint(Tone::Bad, "!");
        screen.line(format_args!("{mark} {}: {}: {words}", manifest.source, title(&manifest.object)));
        left.not_served += 1;
        false
    });
    for attempt in 1..=ATTEMPTS {
        let mut again = Vec::new();
        for manifest in all {
            let title = title(&manifest.object);
            let Err(problem) = manifests::apply_strictly(client, &with_last_applied(&manifest.object)).await
            else {
                screen.line(format_args!("  {}: {title}", manifest.source));
                continue;
            };
            match problem {
                ManifestError::Unanswered { .. } if attempt < ATTEMPTS => {
                    screen.line(format_args!("  {}: {title}: no answer, tried again", manifest.source));
                    again.push(manifest);
                    continue;
                }
                ManifestError::Unanswered { .. } => left.unanswered += 1,
                _ => left.refused += 1,
            }
            refused(screen, &manifest.source, &title, &problem.to_string());
        }
        if again.is_empty() {
            break;
        }
        all = again;
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
    left
}

fn refused(screen: Screen, source: &str, title: &str, problem: &str) {
    let mark = screen.paint(Tone::Bad, "!");
    let place = if source.is_empty() { String::new() } else { format!("{source}: ") };
    let words = problem.split_once(": ").map_or(problem, |(_, words)| words);
    screen.line(format_args!("{mark} {place}{title}: {words}"));
}

/// The object as a user declares it, with kubectl's annotation, so that a changed file can be applied again with
/// `kubectl apply`.
fn with_last_applied(object: &Value) -> Value {
    let mut declared = declared(object);
    let text = format!("{declared}\n");
    declared["metadata"]["annotations"][LAST_APPLIED] = text.into();
    declared
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(object: Value) -> Manifest {
        Manifest { source: "c.yaml".to_owned(), object }
    }

    #[test]
    fn namespaces_and_secrets_that_are_named_and_not_held_are_made() {
        let identity = |name: &str, kind: &str, secret: Value| {
            manifest(json!({
                "kind": "AzureClusterIdentity", "metadata": { "name": name, "namespace": "team" },
                "spec": { "type": kind, "clientSecret": secret },
            }))
        };
        let all = [
            identity("a", "ServicePrincipal", json!({ "name": "held", "namespace": "default" })),
            identity("b", "ServicePrincipal", json!({ "name": "absent" })),
            identity("c", "WorkloadIdentity", json!({ "name": "unused", "namespace": "x" })),
            manifest(json!({ "kind": "Secret", "metadata": { "name": "held" } })),
            manifest(json!({
                "kind": "AzureASOManagedCluster", "metadata": { "name": "c", "namespace": "shop" },
                "spec": { "resources": [{ "metadata": { "annotations": { CREDENTIAL: "aso" } } }] },
            })),
            manifest(json!({ "kind": "Namespace", "metadata": { "name": "shop" } })),
            manifest(json!({ "kind": "Cluster", "metadata": { "name": "c", "namespace": "shop" } })),
        ];
        let made: Vec<String> = presupposed(&all).iter().map(title).collect();
        assert_eq!(made, ["Namespace team", "Secret team/absent", "Secret shop/aso"]);
    }

    #[test]
    fn classes_of_clusters_are_left_out_and_managed_clusters_are_not() {
        const OURS: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
        const CORE: &str = "cluster.x-k8s.io/v1beta2";
        for (api_version, kind, spec, is_refused) in [
            (OURS, "AzureASOManagedControlPlane", json!({}), false),
            (OURS, "AzureManagedCluster", json!({}), false),
            (CORE, "ClusterClass", json!({}), true),
            (CORE, "Cluster", json!({ "topology": { "class": "x" } }), true),
            (CORE, "Cluster", json!({}), false),
            ("x.io/v1", "ClusterClass", json!({}), false),
        ] {
            let object = json!({ "apiVersion": api_version, "kind": kind, "spec": spec });
            assert_eq!(refusal(&object).is_some(), is_refused, "{kind}");
        }
    }

    #[test]
    fn what_is_applied_remembers_what_the_file_said() {
        let object =
            json!({ "kind": "Cluster", "metadata": { "name": "c", "uid": "u" }, "status": { "phase": "x" } });
        let applied = with_last_applied(&object);
        let memory: Value =
            serde_json::from_str(applied["metadata"]["annotations"][LAST_APPLIED].as_str().unwrap()).unwrap();
        assert_eq!(memory, json!({ "kind": "Cluster", "metadata": { "name": "c" } }));
    }
}
