//! The servers under comparison: the simulated Kubernetes with our definitions and our admission in the process, and
//! another one with the peer's definitions and webhooks, which are called over TLS.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capz_api::admission::{needs, review};
use capz_api::crd::{GROUP, KINDS, Kind, VERSION, definition};
use capz_api::webhooks::{Task, WEBHOOKS, Webhook, registration};
use capz_api::{Context, Gates, Lookup, Random, SystemPools};
use http_body_util::BodyExt as _;
use kube::Client;
use kubernetes_simulator::{AdmissionHook, AdmissionRequest, Collection, Decision, Kubernetes, Options};
use serde_json::{Value, json};
use simulated_cluster::WebhookServer;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::answer::{Answer, comparable};
use crate::program::Program;
use admission_corpus::{CLUSTERS, Case, cluster_network};

/// The subscription of the cluster with the machines of the corpus.
const SUBSCRIPTION: &str = "11111111-1111-1111-1111-111111111111";
/// Pools of the corpus, with the Kubernetes version of their MachinePool.
const POOLS: [(&str, &str); 3] = [("c1", "v1.31.1"), ("old", "v1.25.9"), ("just", "v1.26.0")];
/// A public key of Ed25519 with only zero bytes.
const SSH_KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
/// The time limit for the peer to serve its webhooks.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// A server with its admission.
pub struct Place {
    client: Client,
    /// The object in the server.
    stored: Option<(String, Value)>,
    /// Its version.
    version: Value,
    peer: Option<Peer>,
}

/// The peer, which ends with this value, and its server's sockets.
struct Peer {
    program: Program,
    _sockets: DropGuard,
}

impl Place {
    /// The simulated Kubernetes with our definitions and our admission, with all gates open or closed.
    ///
    /// # Errors
    /// A definition is not accepted.
    pub fn ours(gates: bool) -> anyhow::Result<Self> {
        let gates = Gates { edge_zone: gates, api_server_ilb: gates, ..Gates::default() };
        let kubernetes = Kubernetes::new(Options { collection: Collection::Off, ..Options::default() });
        for kind in &KINDS {
            kubernetes
                .create(definition(kind))
                .map_err(|error| anyhow::anyhow!("{}: {error:?}", kind.name))?;
        }
        for webhook in &WEBHOOKS {
            let resource = Kind::named(webhook.kind).map(Kind::plural).unwrap_or_default();
            let hook = match webhook.task {
                Task::Default => {
                    AdmissionHook::mutating(webhook.name(), move |request| decide(webhook, gates, request))
                }
                Task::Validate => {
                    AdmissionHook::validating(webhook.name(), move |request| decide(webhook, gates, request))
                }
            };
            kubernetes.admission_hook(hook.on(&["CREATE", "UPDATE"], GROUP, &[&resource]));
        }
        let client = Client::new(kubernetes.router(), "default");
        Ok(Self { client, stored: None, version: Value::Null, peer: None })
    }

    /// The simulated Kubernetes with the definitions in these folders and the webhooks of the program `peer`.
    ///
    /// # Errors
    /// Something does not start, or is not accepted.
    pub async fn theirs(
        peer: &Path,
        definitions: &[PathBuf],
        gates: bool,
        directory: &Path,
    ) -> anyhow::Result<Self> {
        let kubernetes = Kubernetes::new(Options { collection: Collection::Off, ..Options::default() });
        let stop = CancellationToken::new();
        let address = kubernetes.serve_https(([127, 0, 0, 1], 0).into(), stop.clone()).await?;
        let kubeconfig = directory.join("kubeconfig");
        std::fs::write(&kubeconfig, kubernetes.kubeconfig(&format!("https://{address}"))?)?;
        let client = Client::new(kubernetes.router(), "default");
        for folder in definitions {
            define(&client, folder).await.with_context(|| folder.display().to_string())?;
        }
        for object in clusters() {
            until_made(&client, &object).await?;
        }
        let webhooks = WebhookServer::new(directory.join("certificates"))?;
        let program = Program::start(
            "peer",
            directory,
            Command::new(peer)
                .arg(format!("--webhook-port={}", webhooks.port))
                .arg(format!("--webhook-cert-dir={}", webhooks.certificates.display()))
                .arg("--health-addr=127.0.0.1:0")
                .arg(format!("--feature-gates=EdgeZone={gates},APIServerILB={gates}"))
                .env("KUBECONFIG", &kubeconfig),
        )?;
        let mut this = Self {
            client,
            stored: None,
            version: Value::Null,
            peer: Some(Peer { program, _sockets: stop.drop_guard() }),
        };
        for task in [Task::Default, Task::Validate] {
            until_made(&this.client, &webhooks.registration(registration(task))).await?;
        }
        this.wait().await?;
        Ok(this)
    }

    /// Waits until an object is completed: then the server knows the webhooks, and they answer.
    async fn wait(&mut self) -> anyhow::Result<()> {
        let deadline = tokio::time::Instant::now() + READY_TIMEOUT;
        let object = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "AzureCluster", "metadata": { "name": "probe" },
            "spec": { "location": "l", "identityRef": { "kind": "AzureClusterIdentity", "name": "i" } },
        });
        loop {
            let (code, answer) = self.send("POST", &dry(&path("AzureCluster", "")), Some(&object)).await?;
            if code == 201 && answer["spec"]["resourceGroup"] == "probe" {
                return Ok(());
            }
            if let Some(peer) = &mut self.peer {
                peer.program.must_run()?;
            }
            ensure!(tokio::time::Instant::now() < deadline, "the peer does not answer: {answer}");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    /// The server's answer to a case.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn judge(&mut self, case: &Case) -> anyhow::Result<Answer> {
        let kind = &case.kind;
        let Some(old) = &case.old else {
            self.forget().await?;
            let (code, answer) = self.send("POST", &dry(&path(kind, "")), Some(&case.new)).await?;
            return Ok(said(&case.new, code, &answer));
        };
        let name = old["metadata"]["name"].as_str().unwrap_or_default();
        if self.stored.as_ref().is_none_or(|(_, stored)| stored != old) {
            self.forget().await?;
            let (code, answer) = self.send("POST", &path(kind, ""), Some(old)).await?;
            if code != 201 {
                return Ok(Answer::NoBefore);
            }
            self.version = answer["metadata"]["resourceVersion"].clone();
            self.stored = Some((path(kind, name), old.clone()));
        }
        let mut new = case.new.clone();
        new["metadata"]["resourceVersion"] = self.version.clone();
        let (code, answer) = self.send("PUT", &dry(&path(kind, name)), Some(&new)).await?;
        Ok(said(&case.new, code, &answer))
    }

    async fn forget(&mut self) -> anyhow::Result<()> {
        if let Some((path, _)) = self.stored.take() {
            let (code, answer) = self.send("DELETE", &path, None).await?;
            ensure!(code == 200, "{path} cannot be deleted: {answer}");
        }
        Ok(())
    }

    async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<(u16, Value)> {
        send(&self.client, method, path, body).await
    }
}

fn path(kind: &str, name: &str) -> String {
    let plural = Kind::named(kind).map(Kind::plural).unwrap_or_default();
    let path = format!("/apis/{GROUP}/{VERSION}/namespaces/default/{plural}");
    if name.is_empty() { path } else { format!("{path}/{name}") }
}

fn dry(path: &str) -> String {
    format!("{path}?dryRun=All")
}

async fn send(
    client: &Client,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> anyhow::Result<(u16, Value)> {
    let bytes = body.map(Value::to_string).unwrap_or_default().into_bytes();
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(kube::client::Body::from(bytes))?;
    let answer = client.send(request).await?;
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await?.to_bytes();
    Ok((code, serde_json::from_slice(&bytes).unwrap_or_default()))
}

fn said(sent: &Value, code: u16, answer: &Value) -> Answer {
    match code {
        200 | 201 => Answer::Taken(comparable(&sent["spec"], &answer["spec"])),
        code => Answer::Refused { code, message: answer["message"].as_str().unwrap_or_default().to_owned() },
    }
}

/// Our admission, as a hook in the process.
async fn decide(webhook: &'static Webhook, gates: Gates, request: AdmissionRequest) -> Decision {
    let Some(new) = request.object else { return Decision::allow() };
    let needs = needs(webhook.kind, &new, request.old_object.as_ref());
    let pool = POOLS.iter().find(|(name, _)| *name == request.name);
    let unknown = "no MachinePool refers to it";
    let mut context = Context {
        gates,
        topology_dry_run: capz_api::admission::is_topology_dry_run(request.dry_run, &new),
        ..Context::default()
    };
    if needs.subscription {
        context.subscription = Lookup::Found(SUBSCRIPTION.to_owned());
    }
    if needs.system_pools {
        context.system_pools = Lookup::Found(SystemPools { cluster_goes: false, others: 0 });
    }
    if needs.pool_version {
        context.pool_version = match pool {
            Some((_, version)) => Lookup::Found((*version).to_owned()),
            None => Lookup::Failed(unknown.to_owned()),
        };
    }
    if needs.cluster_network {
        context.cluster_network = cluster_network(&new);
    }
    let name = request.name.clone();
    match review(webhook, new, request.old_object.as_ref(), &context, &mut Drawn) {
        Ok(admitted) => {
            admitted.warnings.into_iter().fold(Decision::replace(admitted.object), Decision::warn)
        }
        Err(denied) => {
            let status = denied.status(webhook.kind, &name);
            let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(403);
            Decision::deny(status["message"].as_str().unwrap_or_default()).code(code)
        }
    }
}

/// Random values, which differ each time and are removed before answers are compared.
struct Drawn;

static DRAWN: AtomicU32 = AtomicU32::new(0);

impl Random for Drawn {
    fn guid(&mut self) -> String {
        format!("00000000-0000-4000-8000-{:012x}", DRAWN.fetch_add(1, Ordering::Relaxed))
    }

    fn ssh_public_key(&mut self) -> String {
        let number = DRAWN.fetch_add(1, Ordering::Relaxed);
        STANDARD.encode(format!("ssh-ed25519 {SSH_KEY} drawn-{number}"))
    }
}

/// Applies every definition in a folder, without its conversion webhook: there is nothing to convert.
async fn define(client: &Client, folder: &Path) -> anyhow::Result<()> {
    let mut count = 0;
    for entry in std::fs::read_dir(folder)? {
        let file = entry?.path();
        if file.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let objects: Vec<Value> = serde_saphyr::from_multiple(&std::fs::read_to_string(&file)?)?;
        for mut object in objects.into_iter().filter(|object| object["kind"] == "CustomResourceDefinition") {
            object["spec"]["conversion"] = json!({ "strategy": "None" });
            until_made(client, &object).await.with_context(|| file.display().to_string())?;
            count += 1;
        }
    }
    ensure!(count > 0, "there is no definition in it");
    Ok(())
}

/// The clusters of the corpus, for webhooks that look them up.
fn clusters() -> Vec<Value> {
    let infrastructure = |kind: &str, name: &str| json!({ "apiGroup": GROUP, "kind": kind, "name": name });
    let mut objects = vec![json!({
        "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "AzureCluster", "metadata": { "name": "owner" },
        "spec": { "location": "l", "subscriptionID": SUBSCRIPTION },
    })];
    objects.extend(CLUSTERS.iter().map(|(name, services, pods)| {
        let mut spec = json!({ "infrastructureRef": infrastructure("AzureCluster", "owner") });
        for (member, ranges) in [("services", services), ("pods", pods)] {
            if !ranges.is_empty() {
                spec["clusterNetwork"][member]["cidrBlocks"] = json!(ranges);
            }
        }
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": name }, "spec": spec,
        })
    }));
    objects.extend(POOLS.iter().map(|(name, version)| {
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "metadata": { "name": name },
            "spec": { "clusterName": "owner", "template": { "spec": {
                "clusterName": "owner", "version": version, "bootstrap": { "dataSecretName": "none" },
                "infrastructureRef": infrastructure("AzureMachinePool", name),
            } } },
        })
    }));
    objects
}

/// Creates an object, with retries: a server that has just accepted a definition may not serve the kind yet.
async fn until_made(client: &Client, object: &Value) -> anyhow::Result<()> {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    let plural = format!("{}s", kind.to_lowercase());
    let path = match version {
        "apiextensions.k8s.io/v1" | "admissionregistration.k8s.io/v1" => format!("/apis/{version}/{plural}"),
        _ => format!("/apis/{version}/namespaces/default/{plural}"),
    };
    let deadline = tokio::time::Instant::now() + READY_TIMEOUT;
    loop {
        let (code, answer) = send(client, "POST", &path, Some(object)).await?;
        match code {
            201 => return Ok(()),
            404 if tokio::time::Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            _ => bail!("{kind} {} is not taken: {answer}", object["metadata"]["name"]),
        }
    }
}
