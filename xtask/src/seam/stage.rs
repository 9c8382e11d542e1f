//! The stage of a story: a management cluster with its programs, and checks of its state.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use azure_simulator::packet::Source;
use serde_json::{Value, json};
use simulated_cluster::{Shape, WorkloadOptions};
use tokio::time::Instant;

use super::azure::{Watch, documents};
use super::cluster::apply_cluster;
use crate::e2e::capz::objects::{api, delete, merge};
use crate::print;
use crate::program::Program;
use crate::record::flavor;
use crate::record::operator::{self, Operator};
use crate::record::place::Place;
use crate::record::provider::Provider;
use crate::record::rest;

/// The time limit of a step.
const STEP: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(500);
/// How long a state must stay unchanged: the operator deletes within a second.
const WATCHED: Duration = Duration::from_secs(20);
/// The time limit for a program to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The kinds with the annotation that stops a move.
const BLOCKING: [&str; 9] = [
    "AzureCluster",
    "AzureMachine",
    "AzureMachinePool",
    "AzureManagedCluster",
    "AzureManagedControlPlane",
    "AzureManagedMachinePool",
    "AzureASOManagedCluster",
    "AzureASOManagedControlPlane",
    "AzureASOManagedMachinePool",
];
/// The kinds that a move takes along, dependants first.
const MOVED: [(&str, &str); 12] = [
    (INFRASTRUCTURE, "AzureMachine"),
    (CORE, "Machine"),
    (INFRASTRUCTURE, "AzureMachineTemplate"),
    (INFRASTRUCTURE, "AzureManagedMachinePool"),
    (INFRASTRUCTURE, "AzureASOManagedMachinePool"),
    (CORE, "MachinePool"),
    (INFRASTRUCTURE, "AzureManagedControlPlane"),
    (INFRASTRUCTURE, "AzureASOManagedControlPlane"),
    (INFRASTRUCTURE, "AzureManagedCluster"),
    (INFRASTRUCTURE, "AzureASOManagedCluster"),
    (INFRASTRUCTURE, "AzureCluster"),
    (CORE, "Cluster"),
];
const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";
/// The label of what our manager writes in place of the operator.
const EXPORT: &str = "sigs.k8s.io/cluster-api-provider-azure-export";
const POLICY: &str = "serviceoperator.azure.com/reconcile-policy";
/// The policy of an object without the annotation.
const DEFAULT_POLICY: &str = "manage";
const CORE: &str = "cluster.x-k8s.io/v1beta2";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta1";

/// The programs of a run.
pub struct Programs {
    /// Azure Service Operator.
    pub operator: PathBuf,
    /// The established provider's manager.
    pub provider: PathBuf,
    /// The provider's sources.
    pub sources: PathBuf,
    /// Our manager.
    pub manager: PathBuf,
    /// The flavor of the cluster, and its name.
    pub flavor: String,
}

/// A management cluster with its running programs.
pub struct Stage<'a> {
    programs: &'a Programs,
    shape: Shape,
    place: Place,
    operator: Operator,
    provider: Provider,
    /// The operator, if it runs.
    of_operator: Option<Program>,
    /// The manager, the established one or ours, if it runs.
    manager: Option<Program>,
    /// The names of the warnings before it started.
    known_warnings: BTreeSet<String>,
}

impl<'a> Stage<'a> {
    /// Creates a management cluster with the established provider installed, and without running programs.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn set(programs: &'a Programs, directory: &Path) -> anyhow::Result<Self> {
        let shape = Shape { region: "eastus".to_owned(), ..Shape::default() };
        let management: Source = WorkloadOptions::default().management;
        let place = Place::start(directory, &shape, management).await?;
        if flavor::is_managed(&programs.flavor) {
            place.serve_managed_clusters(directory).await?;
        }
        let operator = Operator::install(&programs.operator, directory, &place).await?;
        let provider = Provider::install(&programs.provider, &programs.sources, directory, &place).await?;
        let known_warnings = BTreeSet::new();
        Ok(Self {
            programs,
            shape,
            place,
            operator,
            provider,
            of_operator: None,
            manager: None,
            known_warnings,
        })
    }

    /// Starts the operator.
    ///
    /// # Errors
    /// The operator does not start.
    pub async fn start_operator(&mut self) -> anyhow::Result<()> {
        self.of_operator = Some(self.operator.start(&self.place).await?);
        Ok(())
    }

    /// Removes the operator, as `clusterctl upgrade` does.
    ///
    /// # Errors
    /// The operator does not end.
    pub async fn take_operator_away(&mut self) -> anyhow::Result<()> {
        let running = self.of_operator.take().context("the operator does not run")?;
        self.operator.uninstall(running, &self.place).await
    }

    /// Starts the operator again, with its original kinds.
    ///
    /// # Errors
    /// The operator does not start.
    pub async fn bring_operator_back(&mut self) -> anyhow::Result<()> {
        self.operator.define_again(&self.place).await?;
        self.start_operator().await
    }

    /// Replaces the manager with the established one.
    ///
    /// # Errors
    /// The manager does not start.
    pub async fn established(&mut self) -> anyhow::Result<()> {
        self.end_manager().await?;
        self.give_exports_back().await?;
        self.manager = Some(self.provider.start(&self.place).await?);
        Ok(())
    }

    /// Deletes what our manager has written in place of the operator, as the guide says: the operator writes no Secret or
    /// ConfigMap that another object owns.
    async fn give_exports_back(&self) -> anyhow::Result<()> {
        for kind in ["Secret", "ConfigMap"] {
            for object in self.place.kubernetes.list(kind) {
                if object.value()["metadata"]["labels"][EXPORT].is_string() {
                    delete(&self.place.client, object.value()).await?;
                }
            }
        }
        Ok(())
    }

    /// Replaces the manager with ours, with the same flags.
    ///
    /// # Errors
    /// The manager does not start.
    pub async fn ours(&mut self) -> anyhow::Result<()> {
        self.end_manager().await?;
        self.known_warnings = self.warnings();
        let timing = ["--reconciler-requeue=2s", "--debouncing-timer=1s", "--sync-period=30s"];
        let program = &self.programs.manager;
        self.manager =
            Some(self.provider.swap(program, "capz-controller-manager", &timing, &self.place).await?);
        Ok(())
    }

    /// The names of all warnings.
    fn warnings(&self) -> BTreeSet<String> {
        let events = self.place.kubernetes.list("Event").into_iter();
        events.filter(|it| it.value()["type"] == "Warning").map(|it| it.name().to_owned()).collect()
    }

    /// Checks that our manager has raised no warning.
    ///
    /// # Errors
    /// The warnings.
    pub fn is_content(&self) -> anyhow::Result<()> {
        let names = self.warnings();
        let new: Vec<String> = self
            .place
            .kubernetes
            .list("Event")
            .into_iter()
            .filter(|it| names.contains(it.name()) && !self.known_warnings.contains(it.name()))
            .map(|it| format!("{}: {}", it.value()["reason"], it.value()["note"]))
            .collect();
        anyhow::ensure!(new.is_empty(), "our manager warns: {}", new.join("\n"));
        Ok(())
    }

    /// Stops the manager.
    ///
    /// # Errors
    /// The manager does not end.
    pub async fn end_manager(&mut self) -> anyhow::Result<()> {
        if let Some(mut running) = self.manager.take() {
            running.terminate(PATIENCE).await?;
        }
        Ok(())
    }

    /// Applies the cluster as a user; the webhooks of the running manager complete it.
    ///
    /// # Errors
    /// It takes too long.
    pub async fn make_cluster(&mut self) -> anyhow::Result<()> {
        self.provider.register(&self.place).await?;
        apply_cluster(&self.place.world, &self.place.client, &self.programs.flavor, &self.shape).await?;
        self.rests().await
    }

    /// Waits until the cluster has its desired state, and nothing has been written for a while.
    ///
    /// # Errors
    /// It takes too long, or a program ends.
    pub async fn rests(&mut self) -> anyhow::Result<()> {
        let client = self.place.client.clone();
        rest(&client, || self.must_run()).await
    }

    /// Starts watching Azure, which must not change.
    pub fn watch_azure(&self) -> Watch {
        Watch::begin(&self.place.world.azure.azure)
    }

    /// Waits for a while in which nothing must happen.
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

    /// Waits until a condition holds.
    ///
    /// # Errors
    /// It takes too long, or a program ends.
    pub async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) -> anyhow::Result<()> {
        let begun = Instant::now();
        while !holds(self) {
            self.must_run()?;
            if begun.elapsed() > STEP {
                let all = BLOCKING.iter().flat_map(|kind| self.place.kubernetes.list(kind));
                let clusters: Vec<Value> = all.map(|it| it.value().clone()).collect();
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
        let all = operator::kinds().flat_map(|kind| self.place.kubernetes.list(kind));
        all.map(|it| {
            let policy = it["metadata"]["annotations"][POLICY].as_str().unwrap_or(DEFAULT_POLICY).to_owned();
            (format!("{} {}", it["kind"].as_str().unwrap_or_default(), it.name()), policy)
        })
        .collect()
    }

    /// Whether the operator has objects, and all of them have this policy.
    pub fn all_have(&self, policy: &str) -> bool {
        let found: BTreeSet<String> = self.policies().into_values().collect();
        found == BTreeSet::from([policy.to_owned()])
    }

    /// Whether all of the operator's objects are ready.
    pub fn all_are_ready(&self) -> bool {
        let all: Vec<_> = operator::kinds().flat_map(|kind| self.place.kubernetes.list(kind)).collect();
        !all.is_empty()
            && all.iter().all(|it| {
                let conditions = it["status"]["conditions"].as_array();
                conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "True")
            })
    }

    /// Whether a move would have to wait.
    pub fn blocks_move(&self) -> bool {
        let all: Vec<_> = BLOCKING.iter().flat_map(|kind| self.place.kubernetes.list(kind)).collect();
        all.iter().any(|it| it["metadata"]["annotations"][BLOCK_MOVE].is_string())
    }

    /// Pauses or unpauses the cluster.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn pause(&self, paused: bool) -> anyhow::Result<()> {
        let patch = json!({ "spec": { "paused": paused } });
        merge(&self.place.client, (CORE, "Cluster"), &self.programs.flavor, &patch).await
    }

    /// Removes the cluster's objects without their finalizers, as `clusterctl move` does in the source management
    /// cluster.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn leave(&self) -> anyhow::Result<()> {
        for (version, kind) in MOVED {
            for object in self.place.kubernetes.list(kind) {
                let free = json!({ "metadata": { "finalizers": null,
                    "annotations": { "clusterctl.cluster.x-k8s.io/delete-for-move": "" } } });
                // Removing the last finalizer of an object that is being deleted deletes it.
                let _ = merge(&self.place.client, (version, kind), object.name(), &free).await;
                let named = json!({ "apiVersion": version, "kind": kind,
                    "metadata": { "name": object.name(), "namespace": "default" } });
                delete(&self.place.client, &named).await?;
            }
        }
        Ok(())
    }

    /// Deletes the Cluster as a user.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn delete_cluster(&self) -> anyhow::Result<()> {
        let clusters = api(&self.place.client, CORE, "Cluster", Some("default"));
        clusters.delete(&self.programs.flavor, &kube::api::DeleteParams::default()).await?;
        Ok(())
    }

    /// Whether nothing is left of the cluster, neither in Azure nor in Kubernetes.
    pub fn is_gone(&self) -> bool {
        let group = format!("/resourcegroups/{}", self.programs.flavor);
        BLOCKING.iter().chain(&["Cluster"]).all(|kind| self.place.kubernetes.list(kind).is_empty())
            && self.policies().is_empty()
            && !documents(&self.place.world.azure.azure).keys().any(|id| id.contains(&group))
    }

    /// The running programs.
    pub fn programs(&self) -> Vec<&Program> {
        self.of_operator.iter().chain(&self.manager).collect()
    }
}
