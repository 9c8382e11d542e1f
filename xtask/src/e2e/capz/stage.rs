//! The stage of a story: a management cluster in its environment, and the actions of a user.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::management::{Management, Programs};
use super::objects::{api, create, merge};
use super::view::{CORE, View};
use crate::print;
use crate::program::Program;
use crate::world::{CLIENT_SECRET, World};

/// The time limit of a step.
const STEP: Duration = Duration::from_secs(240);
const LOOK: Duration = Duration::from_millis(200);
/// How long a state must stay unchanged.
const REST: Duration = Duration::from_secs(20);
/// The Secret in the identity of a cluster.
pub const SECRET: &str = "azure-identity";
/// Kinds without any object once a cluster is deleted: ours, and Machines.
const GONE: [&str; 11] = [
    "AzureCluster",
    "AzureMachine",
    "AzureMachinePool",
    "AzureMachinePoolMachine",
    "AzureManagedCluster",
    "AzureManagedControlPlane",
    "AzureManagedMachinePool",
    "AzureASOManagedCluster",
    "AzureASOManagedControlPlane",
    "AzureASOManagedMachinePool",
    "Machine",
];

/// An environment with a management cluster, and optionally a second one.
pub struct Stage<'a> {
    /// The programs of the run.
    pub programs: &'a Programs,
    /// Azure, and the clusters of its machines.
    pub place: &'a World,
    /// The folder for files and logs.
    pub directory: &'a Path,
    /// The management cluster that users work with.
    pub management: Management,
    /// A second management cluster, once there is one.
    pub other: Option<Management>,
    /// Azure's documents before the story.
    before: Vec<Value>,
}

impl<'a> Stage<'a> {
    /// Starts the management cluster, with the Secret of identities.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn set(programs: &'a Programs, place: &'a World, directory: &'a Path) -> anyhow::Result<Self> {
        let before = place.azure.azure.documents();
        let management = Management::start(programs, &directory.join("management"), place).await?;
        let secret = json!({ "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": SECRET, "namespace": "default",
                "labels": { "clusterctl.cluster.x-k8s.io/move-hierarchy": "true" } },
            "data": { "clientSecret": STANDARD.encode(CLIENT_SECRET) } });
        create(&management.server.client, &secret).await?;
        Ok(Self { programs, place, directory, management, other: None, before })
    }

    /// Creates these objects as a user.
    ///
    /// # Errors
    /// The server refuses one.
    pub async fn create(&self, objects: &[Value]) -> anyhow::Result<()> {
        for object in objects {
            create(&self.management.server.client, object).await?;
        }
        Ok(())
    }

    /// Applies a merge patch to an object as a user.
    ///
    /// # Errors
    /// The server's error.
    pub async fn merge(&self, version: &str, kind: &str, name: &str, patch: &Value) -> anyhow::Result<()> {
        merge(&self.management.server.client, (version, kind), name, patch).await
    }

    /// Applies a JSON patch to an object as a user.
    ///
    /// # Errors
    /// The server's error.
    pub async fn patch(&self, version: &str, kind: &str, name: &str, patch: &Value) -> anyhow::Result<()> {
        let patch: Patch<()> = Patch::Json(serde_json::from_value(patch.clone())?);
        let objects = api(&self.management.server.client, version, kind, Some("default"));
        let patched = objects.patch(name, &PatchParams::default(), &patch).await;
        patched.map(drop).with_context(|| format!("{kind} {name}"))
    }

    /// Sets the number of replicas as a user.
    ///
    /// # Errors
    /// The server's error.
    pub async fn scale(&self, version: &str, kind: &str, name: &str, replicas: usize) -> anyhow::Result<()> {
        self.merge(version, kind, name, &json!({ "spec": { "replicas": replicas } })).await
    }

    /// Deletes an object in the namespace `default` as a user.
    ///
    /// # Errors
    /// The server's error.
    pub async fn delete(&self, version: &str, kind: &str, name: &str) -> anyhow::Result<()> {
        let objects = api(&self.management.server.client, version, kind, Some("default"));
        objects.delete(name, &DeleteParams::default()).await.with_context(|| format!("{kind} {name}"))?;
        Ok(())
    }

    /// The current state.
    ///
    /// # Errors
    /// The server's error.
    pub async fn view(&self) -> anyhow::Result<View> {
        View::read(self.place, &self.management.server.client).await
    }

    /// Waits until a condition holds.
    ///
    /// # Errors
    /// It takes too long, or a program ends.
    pub async fn until(&mut self, what: &str, holds: impl Fn(&View) -> bool) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            self.must_run()?;
            let view = self.view().await?;
            if holds(&view) {
                break;
            }
            if begun.elapsed() > STEP {
                let words = view.words(&self.management.server.client).await;
                bail!("not within {} s: {what}\n{words}", STEP.as_secs());
            }
            tokio::time::sleep(LOOK).await;
        }
        print::line(format_args!("  ok    {what} ({:.1} s)", begun.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Waits, and fails if another machine appears, or if Azure is written to once the desired state is reached.
    ///
    /// # Errors
    /// A machine comes or goes, or Azure is written to.
    pub async fn rests(&mut self) -> anyhow::Result<()> {
        let before = self.view().await?.names("Machine");
        tokio::time::sleep(REST / 2).await;
        let since = self.moment();
        tokio::time::sleep(REST).await;
        self.must_run()?;
        let after = self.view().await?.names("Machine");
        ensure!(before == after, "machines come and go: {before:?} became {after:?}");
        let writes = self.writes_since(since);
        ensure!(writes.is_empty(), "written to Azure at rest: {writes:?}");
        print::line("  ok    nothing is written at rest, and no machine comes or goes");
        Ok(())
    }

    /// The number of requests to Azure so far.
    pub fn moment(&self) -> u64 {
        self.place.azure.azure.journal().entries.last().map_or(0, |entry| entry.sequence)
    }

    /// The writes to Azure since that request.
    pub fn writes_since(&self, moment: u64) -> Vec<String> {
        let entries = self.place.azure.azure.journal_after(moment).entries;
        let writes = entries.iter().filter(|entry| !["GET", "POST"].contains(&entry.method.as_str()));
        writes.map(|entry| format!("{} {}", entry.method, entry.path)).collect()
    }

    /// Deletes the cluster as a user, after which nothing of it is left, and Azure is as before.
    ///
    /// # Errors
    /// Something is left.
    pub async fn ends(&mut self, cluster: &str) -> anyhow::Result<()> {
        self.delete(CORE, "Cluster", cluster).await?;
        self.until("the cluster is gone", |view| view.get("Cluster", cluster).is_null()).await?;
        let left = self.view().await?;
        for kind in GONE {
            let count = left.all(kind).count();
            ensure!(count == 0, "{count} objects of the kind {kind} are left");
        }
        let after = self.place.azure.azure.documents();
        ensure!(after == self.before, "Azure is not as before: {}", Value::from(after));
        print::line("  ok    Azure is as before");
        Ok(())
    }

    /// Takes Azure's current documents as those before the story.
    pub fn azure_has_more(&mut self) {
        self.before = self.place.azure.azure.documents();
    }

    fn must_run(&mut self) -> anyhow::Result<()> {
        self.management.must_run()?;
        self.other.as_mut().map_or(Ok(()), Management::must_run)
    }

    /// All running programs.
    pub fn running(&self) -> Vec<&Program> {
        self.management.programs.iter().chain(self.other.iter().flat_map(|one| &one.programs)).collect()
    }

    /// Stops all programs.
    ///
    /// # Errors
    /// A program does not end.
    pub async fn end(&mut self) -> anyhow::Result<()> {
        self.management.end().await?;
        match &mut self.other {
            Some(other) => other.end().await,
            None => Ok(()),
        }
    }
}
