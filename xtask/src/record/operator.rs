//! Azure Service Operator's controller. Its definitions are made at its releases and are no part of its sources: here they take
//! anything, and it converts between their versions itself.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use simulated_cluster::{WebhookServer, free_port};

use super::place::{Place, serves};
use crate::e2e::capz::objects::create;
use crate::program::Program;

const RESOURCES: &str = "resources.azure.com";
const NETWORK: &str = "network.azure.com";
const CONTAINERS: &str = "containerservice.azure.com";
const CONFIGURATION: &str = "kubernetesconfiguration.azure.com";

/// A kind with its plural, the versions that the provider speaks, and the one that the operator stores.
struct Kind {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    spoken: &'static [&'static str],
    stored: &'static str,
}

const fn kind(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    spoken: &'static [&'static str],
    stored: &'static str,
) -> Kind {
    Kind { group, kind, plural, spoken, stored }
}

/// What the provider makes or watches.
const KINDS: [Kind; 11] = [
    kind(RESOURCES, "ResourceGroup", "resourcegroups", &["v1api20200601"], "v1api20200601"),
    kind(NETWORK, "VirtualNetwork", "virtualnetworks", &["v1api20201101"], "v1api20240301"),
    kind(NETWORK, "VirtualNetworksSubnet", "virtualnetworkssubnets", &["v1api20201101"], "v1api20240301"),
    kind(NETWORK, "NatGateway", "natgateways", &["v1api20220701"], "v1api20240301"),
    kind(NETWORK, "BastionHost", "bastionhosts", &["v1api20220701"], "v1api20240301"),
    kind(NETWORK, "PrivateEndpoint", "privateendpoints", &["v1api20220701"], "v1api20240301"),
    kind(
        CONTAINERS,
        "ManagedCluster",
        "managedclusters",
        &["v1api20240901", "v1api20250801", "v20251002preview"],
        "v1api20250801",
    ),
    kind(
        CONTAINERS,
        "ManagedClustersAgentPool",
        "managedclustersagentpools",
        &["v1api20240901", "v1api20250801", "v20251002preview"],
        "v1api20250801",
    ),
    kind(CONTAINERS, "FleetsMember", "fleetsmembers", &["v1api20250301"], "v1api20250301"),
    kind(
        CONTAINERS,
        "MaintenanceConfiguration",
        "maintenanceconfigurations",
        &["v1api20240901", "v1api20250801"],
        "v1api20250801",
    ),
    kind(CONFIGURATION, "Extension", "extensions", &["v1api20230501"], "v1api20241101"),
];

fn definition(kind: &Kind, server: &WebhookServer) -> Value {
    // Each version has one for the operator alone beside it.
    let storage = format!("{}storage", kind.stored);
    let mut versions: Vec<&str> = kind.spoken.to_vec();
    if !versions.contains(&kind.stored) {
        versions.push(kind.stored);
    }
    let all = versions.iter().flat_map(|version| [(*version).to_owned(), format!("{version}storage")]);
    let all: Vec<Value> = all
        .map(|version| {
            json!({ "name": version, "served": true, "storage": version == storage, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true } } })
        })
        .collect();
    let singular = kind.kind.to_lowercase();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        // By this label the operator finds those that it serves.
        "metadata": { "name": format!("{}.{}", kind.plural, kind.group),
            "labels": { "app.kubernetes.io/name": "azure-service-operator" } },
        "spec": {
            "group": kind.group, "scope": "Namespaced", "versions": all,
            "names": { "kind": kind.kind, "listKind": format!("{}List", kind.kind), "plural": kind.plural,
                "singular": singular },
            "conversion": { "strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": server.client_config("/convert") } },
        },
    })
}

/// Defines its kinds, starts it as the provider's manifest does, and registers the webhooks that complete objects once it serves them.
///
/// # Errors
/// It does not start, or the API server does not take its webhooks.
pub async fn start(program: &Path, directory: &Path, place: &Place) -> anyhow::Result<Program> {
    let server = WebhookServer::new(directory.join("operator-webhooks"))?;
    for kind in &KINDS {
        create(&place.client, &definition(kind, &server)).await?;
    }
    let mut running = Program::start(
        "operator",
        directory,
        Command::new(program)
            .arg(format!("--webhook-port={}", server.port))
            .arg(format!("--webhook-cert-dir={}", server.certificates.display()))
            .arg(format!("--health-addr=127.0.0.1:{}", free_port()?))
            .args(["--crd-management=none", "--v=2"])
            .env_clear()
            .env("KUBECONFIG", &place.kubeconfig)
            .env("SSL_CERT_FILE", &place.azure.certificate_authority)
            .env("POD_NAMESPACE", "capz-system")
            .env("HTTPS_PROXY", &place.proxy),
    )?;
    serves(&server, &mut running).await?;
    create(&place.client, &defaults(&server)).await?;
    Ok(running)
}

/// The registration of its webhooks that complete objects.
fn defaults(server: &WebhookServer) -> Value {
    let webhooks: Vec<Value> = KINDS
        .iter()
        .flat_map(|kind| kind.spoken.iter().map(move |version| (kind, *version)))
        .map(|(kind, version)| {
            let path =
                format!("/mutate-{}-{version}-{}", kind.group.replace('.', "-"), kind.kind.to_lowercase());
            json!({
                "name": format!("default.{version}.{}.{}", kind.plural, kind.group),
                "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
                "matchPolicy": "Exact", "clientConfig": server.client_config(&path),
                "rules": [{ "apiGroups": [kind.group], "apiVersions": [version], "resources": [kind.plural],
                    "operations": ["CREATE", "UPDATE"] }],
            })
        })
        .collect();
    json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": { "name": "azure-service-operator" }, "webhooks": webhooks })
}
