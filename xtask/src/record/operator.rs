//! Azure Service Operator's controller. Its definitions are generated for its releases and are not in its sources: here
//! they have no schemas, and the operator converts between their versions itself.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use simulated_cluster::{WebhookServer, free_port};

use super::place::Place;
use crate::e2e::capz::objects::{api, create, delete};
use crate::program::Program;
use crate::webhooks::served;

/// The time limit for it to end.
const PATIENCE: Duration = Duration::from_secs(60);

const RESOURCES: &str = "resources.azure.com";
const NETWORK: &str = "network.azure.com";
const CONTAINERS: &str = "containerservice.azure.com";
const CONFIGURATION: &str = "kubernetesconfiguration.azure.com";

/// A kind with its plural, the versions that the provider uses, and the one that the operator stores.
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

/// The kinds that the provider creates or watches.
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

/// The kinds of its objects, owners first.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.kind)
}

/// The Service of its webhooks, and its namespace.
const SERVICE: (&str, &str) = ("capz-system", "azureserviceoperator-webhook-service");
/// The name of the registration of its webhooks.
const REGISTRATION: &str = "azure-service-operator";

/// Its definitions, whose objects are not converted: as long as no program of its own converts them.
pub fn definitions_without_conversion() -> Vec<Value> {
    KINDS.iter().map(|kind| definition(kind, &json!({ "strategy": "None" }))).collect()
}

fn by_webhook(server: &WebhookServer) -> Value {
    json!({ "strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": server.service_config(SERVICE.0, SERVICE.1, "/convert") } })
}

fn definition(kind: &Kind, conversion: &Value) -> Value {
    // Each version has another one that only the operator uses.
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
        // The operator finds the definitions that it serves by this label.
        "metadata": { "name": format!("{}.{}", kind.plural, kind.group),
            "labels": { "app.kubernetes.io/name": "azure-service-operator" } },
        "spec": {
            "group": kind.group, "scope": "Namespaced", "versions": all,
            "names": { "kind": kind.kind, "listKind": format!("{}List", kind.kind), "plural": kind.plural,
                "singular": singular },
            "conversion": conversion,
        },
    })
}

/// The operator as installed in a management cluster.
pub struct Operator {
    server: WebhookServer,
    program: PathBuf,
    directory: PathBuf,
}

impl Operator {
    /// Installs it from this program: its kinds, and the Service of its webhooks.
    ///
    /// # Errors
    /// The API server refuses that.
    pub async fn install(program: &Path, directory: &Path, place: &Place) -> anyhow::Result<Self> {
        let server = WebhookServer::behind(directory.join("operator-webhooks"), SERVICE.0, SERVICE.1)?;
        let this = Self { server, program: program.to_owned(), directory: directory.to_owned() };
        create(
            &place.client,
            &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": SERVICE.0 } }),
        )
        .await?;
        for kind in &KINDS {
            create(&place.client, &definition(kind, &by_webhook(&this.server))).await?;
        }
        Ok(this)
    }

    /// Starts it as the provider's manifest does, and registers its defaulting webhooks once it serves them.
    ///
    /// # Errors
    /// It does not start, or the API server refuses its webhooks.
    pub async fn start(&self, place: &Place) -> anyhow::Result<Program> {
        for object in self.service() {
            create(&place.client, &object).await?;
        }
        let mut running = Program::start(
            "operator",
            &self.directory,
            Command::new(&self.program)
                .arg(format!("--webhook-port={}", self.server.port))
                .arg(format!("--webhook-cert-dir={}", self.server.certificates.display()))
                .arg(format!("--health-addr=127.0.0.1:{}", free_port()?))
                .args(["--crd-management=none", "--v=2"])
                .env_clear()
                .env("KUBECONFIG", &place.kubeconfig)
                .env("SSL_CERT_FILE", &place.world.azure.certificate_authority)
                .env("POD_NAMESPACE", SERVICE.0)
                .env("HTTPS_PROXY", &place.world.proxy),
        )?;
        served(&self.server, &mut running).await?;
        create(&place.client, &defaults(&self.server)).await?;
        Ok(running)
    }

    /// Removes what `clusterctl upgrade` removes with the established provider: everything except its kinds and their
    /// objects.
    ///
    /// # Errors
    /// The API server refuses that.
    pub async fn uninstall(&self, mut running: Program, place: &Place) -> anyhow::Result<()> {
        running.terminate(PATIENCE).await?;
        let mut all = self.service().to_vec();
        all.push(
            json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": { "name": REGISTRATION } }),
        );
        for object in all {
            delete(&place.client, &object).await?;
        }
        Ok(())
    }

    /// Defines its kinds again, as the operator does itself when it is installed again.
    ///
    /// # Errors
    /// The API server refuses that.
    pub async fn define_again(&self, place: &Place) -> anyhow::Result<()> {
        for kind in &KINDS {
            let conversion = by_webhook(&self.server);
            let name = format!("{}.{}", kind.plural, kind.group);
            let patched = api(&place.client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", None)
                .patch(
                    &name,
                    &PatchParams::default(),
                    &Patch::Merge(json!({ "spec": { "conversion": conversion } })),
                )
                .await;
            patched.with_context(|| name.clone())?;
        }
        Ok(())
    }

    fn service(&self) -> [Value; 2] {
        let (namespace, name) = SERVICE;
        [
            json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": namespace, "name": name },
                "spec": { "ports": [{ "port": 443, "targetPort": "webhook-server" }] } }),
            json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": { "namespace": namespace, "name": name, "labels": { "kubernetes.io/service-name": name } },
                "ports": [{ "name": "", "port": self.server.port, "protocol": "TCP" }],
                "endpoints": [{ "addresses": ["127.0.0.1"], "conditions": { "ready": true } }] }),
        ]
    }
}

/// The registration of its defaulting webhooks.
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
                "matchPolicy": "Exact", "clientConfig": server.service_config(SERVICE.0, SERVICE.1, &path),
                "rules": [{ "apiGroups": [kind.group], "apiVersions": [version], "resources": [kind.plural],
                    "operations": ["CREATE", "UPDATE"] }],
            })
        })
        .collect();
    json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": { "name": REGISTRATION }, "webhooks": webhooks })
}
