//! A management cluster with whatever program runs in it, and what is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use azure_simulator::packet::Source;
use azure_types::ResourceId;
use serde_json::{Value, json};
use simulated_cluster::{Shape, WorkloadOptions};
use tokio::time::Instant;

use crate::e2e::capz::objects::{api, delete, merge};
use crate::print;
use crate::program::Program;
use crate::record::operator::Operator;
use crate::record::place::Place;
use crate::record::provider::Provider;
use crate::record::{apply, rest};

/// How long a step may take.
const STEP: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(500);
/// How long is waited for what must not happen: the operator deletes within a second.
const WATCHED: Duration = Duration::from_secs(20);
/// How long a program may take to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The kinds of the operator's objects that the provider makes for a cluster.
const KINDS: [&str; 6] = [
    "ResourceGroup",
    "VirtualNetwork",
    "VirtualNetworksSubnet",
    "NatGateway",
    "BastionHost",
    "PrivateEndpoint",
];
/// The tag that ours writes on the group of a cluster that it takes over.
const ID: &str = "sigs.k8s.io_cluster-api-provider-azure_cluster-id";
const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";
const POLICY: &str = "serviceoperator.azure.com/reconcile-policy";
const CORE: &str = "cluster.x-k8s.io/v1beta2";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta1";

/// The programs that are played with.
pub struct Programs {
    /// Azure Service Operator.
    pub operator: PathBuf,
    /// The established provider's manager.
    pub provider: PathBuf,
    /// Its sources.
    pub sources: PathBuf,
    /// Ours.
    pub manager: PathBuf,
    /// The flavor of the cluster, and its name.
    pub flavor: String,
}

/// A management cluster, with what runs in it.
pub struct Stage<'a> {
    programs: &'a Programs,
    shape: Shape,
    place: Place,
    operator: Operator,
    provider: Provider,
    /// The operator, where it runs.
    of_operator: Option<Program>,
    /// The manager, the established one or ours.
    manager: Option<Program>,
}

impl<'a> Stage<'a> {
    /// A management cluster with the established provider installed, and nothing running.
    ///
    /// # Errors
    /// What does not start.
    pub async fn set(programs: &'a Programs, directory: &Path) -> anyhow::Result<Self> {
        let shape = Shape { region: "eastus".to_owned(), ..Shape::default() };
        let management: Source = WorkloadOptions::default().management;
        let place = Place::start(directory, &shape, management).await?;
        let operator = Operator::install(&programs.operator, directory, &place).await?;
        let provider = Provider::install(&programs.provider, &programs.sources, directory, &place).await?;
        Ok(Self { programs, shape, place, operator, provider, of_operator: None, manager: None })
    }

    /// Starts the operator.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start_operator(&mut self) -> anyhow::Result<()> {
        self.of_operator = Some(self.operator.start(&self.place).await?);
        Ok(())
    }

    /// Takes the operator away, as `clusterctl upgrade` does.
    ///
    /// # Errors
    /// It does not end.
    pub async fn take_operator_away(&mut self) -> anyhow::Result<()> {
        let running = self.of_operator.take().context("the operator does not run")?;
        self.operator.uninstall(running, &self.place).await
    }

    /// Brings the operator back, with its kinds as they were.
    ///
    /// # Errors
    /// It does not start.
    pub async fn bring_operator_back(&mut self) -> anyhow::Result<()> {
        self.operator.define_again(&self.place).await?;
        self.start_operator().await
    }

    /// Exchanges the manager for the established one.
    ///
    /// # Errors
    /// It does not start.
    pub async fn established(&mut self) -> anyhow::Result<()> {
        self.end_manager().await?;
        self.manager = Some(self.provider.start(&self.place).await?);
        Ok(())
    }

    /// Exchanges the manager for ours, with the same flags.
    ///
    /// # Errors
    /// It does not start.
    pub async fn ours(&mut self) -> anyhow::Result<()> {
        self.end_manager().await?;
        let timing = ["--reconciler-requeue=2s", "--debouncing-timer=1s", "--sync-period=30s"];
        let program = &self.programs.manager;
        self.manager =
            Some(self.provider.swap(program, "capz-controller-manager", &timing, &self.place).await?);
        Ok(())
    }

    /// Ends the manager.
    ///
    /// # Errors
    /// It does not end.
    pub async fn end_manager(&mut self) -> anyhow::Result<()> {
        if let Some(mut running) = self.manager.take() {
            running.terminate(PATIENCE).await?;
        }
        Ok(())
    }

    /// A user applies the cluster; the webhooks of the manager that runs complete it.
    ///
    /// # Errors
    /// It does not come to rest.
    pub async fn make_cluster(&mut self) -> anyhow::Result<()> {
        self.provider.register(&self.place).await?;
        let shared = ResourceId::group(&self.shape.subscription, "shared");
        let account = shared.resource("Microsoft.Storage", "storageAccounts", "sharedfiles");
        let of_account =
            json!({ "location": "eastus", "sku": { "name": "Standard_LRS" }, "kind": "StorageV2" });
        for (id, body) in [(&shared, json!({ "location": "eastus" })), (&account, of_account)] {
            self.place.azure.azure.put(id, body).map_err(|refusal| anyhow::anyhow!("{id}: {refusal:?}"))?;
        }
        apply(&self.place, &self.programs.flavor, &self.shape, |object| {
            add_private_endpoint(object, &account)
        })
        .await?;
        self.rests().await
    }

    /// Waits until the cluster is as declared, and nothing has been written for a while.
    ///
    /// # Errors
    /// It takes too long, or a program ends.
    pub async fn rests(&mut self) -> anyhow::Result<()> {
        let mut running: Vec<Program> = Vec::new();
        let has_operator = self.of_operator.is_some();
        running.extend(self.of_operator.take());
        running.extend(self.manager.take());
        let done = rest(&self.place, &mut running).await;
        let mut running = running.into_iter();
        if has_operator {
            self.of_operator = running.next();
        }
        self.manager = running.next();
        done
    }

    /// From now on Azure is watched, and must stay as it is.
    pub fn watch_azure(&self) -> Azure {
        let since = self.place.azure.azure.journal().entries.last().map_or(0, |entry| entry.sequence);
        Azure { documents: self.documents(), since }
    }

    fn documents(&self) -> BTreeMap<String, Value> {
        let documents = self.place.azure.azure.documents();
        documents.into_iter().map(|it| (it["id"].as_str().unwrap_or_default().to_lowercase(), it)).collect()
    }

    /// That nothing was deleted in Azure since, and nothing is other than it was, but for the tag with the cluster's id.
    ///
    /// # Errors
    /// What was deleted or changed.
    pub fn azure_is_as_it_was(&self, before: &Azure) -> anyhow::Result<()> {
        let entries = self.place.azure.azure.journal_after(before.since).entries;
        let deleted: Vec<&String> =
            entries.iter().filter(|entry| entry.method == "DELETE").map(|entry| &entry.path).collect();
        ensure!(deleted.is_empty(), "deleted in Azure: {deleted:?}");
        let (mut changed, now) = (Vec::new(), self.documents());
        for (id, document) in &before.documents {
            match now.get(id) {
                None => changed.push(format!("{id} is gone")),
                Some(found) if plain(found) != plain(document) => {
                    changed.push(format!("{id}: {} became {}", plain(document), plain(found)));
                }
                Some(_) => {}
            }
        }
        changed.extend(
            now.keys().filter(|id| !before.documents.contains_key(*id)).map(|id| format!("{id} is new")),
        );
        ensure!(changed.is_empty(), "changed in Azure: {}", changed.join("\n"));
        let writes = entries.iter().filter(|entry| entry.method != "GET").count();
        print::line(format_args!(
            "  Azure is as it was: nothing deleted, {writes} writes that changed nothing but the id"
        ));
        Ok(())
    }

    /// Waits that long for what must not happen.
    ///
    /// # Errors
    /// A program has ended.
    pub async fn watch(&mut self) -> anyhow::Result<()> {
        let end = Instant::now() + WATCHED;
        while Instant::now() < end {
            self.must_run()?;
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    fn must_run(&mut self) -> anyhow::Result<()> {
        self.of_operator.iter_mut().chain(&mut self.manager).try_for_each(Program::must_run)
    }

    /// Waits until this holds.
    ///
    /// # Errors
    /// It takes too long, or a program ends.
    pub async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) -> anyhow::Result<()> {
        let begun = Instant::now();
        while !holds(self) {
            self.must_run()?;
            if begun.elapsed() > STEP {
                let clusters: Vec<Value> =
                    self.place.kubernetes.list("AzureCluster").iter().map(|it| it.value().clone()).collect();
                bail!(
                    "not within {} s: {what}\n{:#}\n{:#}",
                    STEP.as_secs(),
                    json!(self.policies()),
                    json!(clusters)
                );
            }
            tokio::time::sleep(LOOK).await;
        }
        print::line(format_args!("  {what}: {:.0} s", begun.elapsed().as_secs_f64()));
        Ok(())
    }

    /// The operator's objects, with their policies.
    pub fn policies(&self) -> BTreeMap<String, String> {
        let all = KINDS.iter().flat_map(|kind| self.place.kubernetes.list(kind));
        all.map(|it| {
            let policy = it["metadata"]["annotations"][POLICY].as_str().unwrap_or_default().to_owned();
            (format!("{} {}", it["kind"].as_str().unwrap_or_default(), it.name()), policy)
        })
        .collect()
    }

    /// Whether there are objects of the operator, and all have this policy.
    pub fn all_have(&self, policy: &str) -> bool {
        let found: BTreeSet<String> = self.policies().into_values().collect();
        found == BTreeSet::from([policy.to_owned()])
    }

    /// Whether the operator calls all of its objects ready.
    pub fn all_are_ready(&self) -> bool {
        let all: Vec<_> = KINDS.iter().flat_map(|kind| self.place.kubernetes.list(kind)).collect();
        !all.is_empty()
            && all.iter().all(|it| {
                let conditions = it["status"]["conditions"].as_array();
                conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "True")
            })
    }

    /// Whether a move would have to wait.
    pub fn blocks_move(&self) -> bool {
        let kinds = ["AzureCluster", "AzureMachine", "AzureMachinePool"];
        let all: Vec<_> = kinds.iter().flat_map(|kind| self.place.kubernetes.list(kind)).collect();
        all.iter().any(|it| it["metadata"]["annotations"][BLOCK_MOVE].is_string())
    }

    /// Pauses the cluster, or lets it go on.
    ///
    /// # Errors
    /// The API server does not take that.
    pub async fn pause(&self, paused: bool) -> anyhow::Result<()> {
        let patch = json!({ "spec": { "paused": paused } });
        merge(&self.place.client, (CORE, "Cluster"), &self.programs.flavor, &patch).await
    }

    /// Removes the cluster's objects as `clusterctl move` does in the management cluster that it leaves: without finalizers.
    ///
    /// # Errors
    /// The API server does not do that.
    pub async fn leave(&self) -> anyhow::Result<()> {
        let kinds = [
            (INFRASTRUCTURE, "AzureMachine"),
            (CORE, "Machine"),
            (INFRASTRUCTURE, "AzureMachineTemplate"),
            (INFRASTRUCTURE, "AzureCluster"),
            (CORE, "Cluster"),
        ];
        for (version, kind) in kinds {
            for object in self.place.kubernetes.list(kind) {
                let free = json!({ "metadata": { "finalizers": null } });
                // The last finalizer of an object that is being deleted takes it along.
                let _ = merge(&self.place.client, (version, kind), object.name(), &free).await;
                let named = json!({ "apiVersion": version, "kind": kind,
                    "metadata": { "name": object.name(), "namespace": "default" } });
                delete(&self.place.client, &named).await?;
            }
        }
        Ok(())
    }

    /// A user deletes the Cluster.
    ///
    /// # Errors
    /// The API server does not do that.
    pub async fn delete_cluster(&self) -> anyhow::Result<()> {
        let clusters = api(&self.place.client, CORE, "Cluster", Some("default"));
        clusters.delete(&self.programs.flavor, &kube::api::DeleteParams::default()).await?;
        Ok(())
    }

    /// Whether nothing is left of the cluster, neither in Azure nor in Kubernetes.
    pub fn is_gone(&self) -> bool {
        let group = format!("/resourcegroups/{}", self.programs.flavor);
        self.place.kubernetes.list("AzureCluster").is_empty()
            && self.place.kubernetes.list("Cluster").is_empty()
            && self.policies().is_empty()
            && !self.documents().keys().any(|id| id.contains(&group))
    }

    /// The last words of what runs.
    pub fn programs(&self) -> Vec<&Program> {
        self.of_operator.iter().chain(&self.manager).collect()
    }
}

/// Gives a cluster's subnet for nodes a private endpoint, which no flavor has.
fn add_private_endpoint(object: &mut Value, account: &ResourceId) {
    let subnets = object.pointer_mut("/spec/networkSpec/subnets").and_then(Value::as_array_mut);
    for subnet in subnets.into_iter().flatten().filter(|subnet| subnet["role"] == "node") {
        subnet["privateEndpoints"] = json!([{ "name": "files", "location": "eastus", "privateLinkServiceConnections": [
            { "name": "to-files", "privateLinkServiceID": account.as_str(), "groupIDs": ["file"] }] }]);
    }
}

/// Azure at some moment.
pub struct Azure {
    documents: BTreeMap<String, Value>,
    since: u64,
}

/// A document without what changes with each write, and without the tag of ours.
fn plain(document: &Value) -> Value {
    let mut plain = document.clone();
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|member, _| member != "etag" && member != ID);
                // The operator writes a subnet's prefix into both of the members for it.
                let alone = members.get("addressPrefix").map(|prefix| json!([prefix]));
                if alone.is_some() && members.get("addressPrefixes") == alone.as_ref() {
                    members.remove("addressPrefixes");
                }
                members.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut plain);
    plain
}
