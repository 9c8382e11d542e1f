//! `cerulean plan` for clusters on Azure: what `capz-controller-manager` would write for an AzureCluster, its machines
//! and pools.
//!
//! Objects are admitted first, as the webhooks would do. Then each object's goals are planned to the end
//! ([`capz_planner::preview`]), in the order of the controllers: the network, the control plane one machine after the
//! other, and everything else.

mod azure;
mod objects;
mod references;
mod report;
mod schemas;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use capz_api::azure_cluster::AzureClusterSpec;
use capz_api::azure_machine::AzureMachineSpec;
use capz_api::azure_machine_pool::AzureMachinePoolSpec;
use capz_api::{Gates, machine::Image};
use capz_planner::cluster::{self, CLUSTER_ID, Memory, dns_suffix};
use capz_planner::machine::{self, MachineInputs, MachineScope};
use capz_planner::operator;
use capz_planner::pool::{self, PoolScope};
use capz_planner::preview::Next;
use capz_planner::sku::{Skus, VIRTUAL_MACHINES};
use capz_planner::{Claimant, ClusterScope, Goal, ObservedResources, Outlook, Preview};
use cloud_config::Secret;
use serde::de::DeserializeOwned;
use serde_json::Value;

use azure::Regions;
pub use azure::Source;
pub use objects::has_clusters;
use objects::{Declared, Machine, Pool, text, texts, title};
pub use report::ClustersPlan;
use report::Section;

use crate::manifests::Manifest;
use crate::not_served;

/// The default port.
const API_SERVER_PORT: i32 = 6443;
/// An empty Azure accepts any subscription.
const ANY_SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";
/// A placeholder for bootstrap data, which is created later: `example`, in base64.
const BOOTSTRAP: &str = "ZXhhbXBsZQ==";

/// Plans the clusters of manifests. `namespace` is the default namespace of objects, `subscription` the default
/// subscription of clusters.
///
/// # Errors
/// Azure cannot be read.
pub async fn plan(
    source: &Source,
    manifests: &[Manifest],
    namespace: &str,
    subscription: Option<&str>,
) -> anyhow::Result<ClustersPlan> {
    let mut regions = Regions::new();
    for location in objects::locations(manifests) {
        let own = manifests.iter().map(|it| it.text("/spec/subscriptionID")).find(|id| !id.is_empty());
        let skus = source.skus(own.or(subscription).unwrap_or(ANY_SUBSCRIPTION), &location).await?;
        regions.insert(location, skus);
    }
    let zones: BTreeMap<String, Vec<String>> =
        regions.iter().map(|(name, skus)| (name.clone(), skus.zones().into_iter().collect())).collect();
    let objects = objects::with_namespaces(manifests, namespace);
    let mut misshapen = schemas::judge(&objects, subscription).await?;
    misshapen.extend(references::misshapen(&objects));
    let found = objects::find(&objects, misshapen, &zones, subscription);
    let mut plan = ClustersPlan { refused: found.refused, notes: found.notes, ..ClustersPlan::default() };
    if matches!(source, Source::Empty) {
        plan.notes.push(
            "assuming an empty subscription, and the machine sizes of the simulated Azure; pass --cloud-config FILE to read \
             the real one"
                .to_owned(),
        );
    }
    plan.notes.extend(not_served::topologies(manifests));
    plan.notes.extend(references::leading_nowhere(&objects));
    for declared in &found.clusters {
        let skus =
            regions.get(text(&declared.azure, "/spec/location")).context("a region was not requested")?;
        plan_cluster(source, declared, skus, subscription, &mut plan).await?;
    }
    Ok(plan)
}

async fn plan_cluster(
    source: &Source,
    declared: &Declared,
    skus: &Skus,
    subscription: Option<&str>,
    plan: &mut ClustersPlan,
) -> anyhow::Result<()> {
    let mut spec: AzureClusterSpec = spec_of(&declared.azure)?;
    let environment = spec.azure_environment.as_deref().unwrap_or_default();
    let Some(dns_suffix) = dns_suffix(environment) else {
        plan.refuse(&declared.azure, format!("azureEnvironment {environment:?} is not a cloud"));
        return Ok(());
    };
    let own = spec.subscription_id.as_deref().map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned);
    let Some(subscription) = own.or_else(|| subscription.map(str::to_owned)) else {
        plan.refuse(
            &declared.azure,
            "no subscription is known: set spec.subscriptionID, or AZURE_SUBSCRIPTION_ID",
        );
        return Ok(());
    };
    let port = declared.port.unwrap_or(API_SERVER_PORT);
    cluster::complete(&mut spec, &declared.cluster, &subscription, port, dns_suffix);
    let said = declared.azure.pointer("/status/failureDomains").and_then(Value::as_object);
    let zones: Vec<String> = match said {
        Some(domains) => domains.keys().cloned().collect(),
        None if spec.extended_location.is_some() => Vec::new(),
        None => skus.zones().into_iter().collect(),
    };
    let annotations = texts(&declared.azure, "/metadata/annotations");
    let kept = operator::kept_of(&annotations);
    let scope = ClusterScope {
        cluster: &declared.cluster,
        id: declared.azure["metadata"]["annotations"][CLUSTER_ID].as_str(),
        marked_only: false,
        kept: &kept,
        namespace: text(&declared.azure, "/metadata/namespace"),
        name: text(&declared.azure, "/metadata/name"),
        spec: &spec,
        subscription: &subscription,
        api_server_port: declared.port,
        zones: &zones,
        dns_suffix,
        gates: Gates::default(),
    };
    let memory = Memory::of(&annotations);
    let mut planner = Planner { source, claimant: scope.claimant(), preview: Preview::default(), plan };
    planner.foresee(&declared.azure, "", |_| Ok(cluster::goals(scope, &memory))).await?;
    let mut is_first = true;
    for machine in &declared.machines {
        let of_control_plane = machine.labels.contains_key(machine::CONTROL_PLANE_LABEL);
        let when = match (of_control_plane, is_first) {
            (true, true) => "once the network is there",
            (true, false) => "once the one before has joined",
            (false, _) => "once the control plane answers",
        };
        is_first &= !of_control_plane;
        planner.machine(machine, scope, skus, when).await?;
    }
    for pool in &declared.pools {
        planner.pool(pool, scope, skus).await?;
    }
    Ok(())
}

struct Planner<'a> {
    source: &'a Source,
    claimant: Claimant<'a>,
    preview: Preview,
    plan: &'a mut ClustersPlan,
}

impl Planner<'_> {
    /// Plans an object to the end.
    async fn foresee(
        &mut self,
        object: &Value,
        when: &str,
        goals: impl Fn(&ObservedResources) -> Result<Vec<Goal>, String>,
    ) -> anyhow::Result<()> {
        let outlook: Outlook = loop {
            let goals = match goals(&self.preview.observed) {
                Ok(goals) => goals,
                Err(why) => {
                    self.plan.refuse(object, why);
                    break self.preview.end(capz_planner::Plan::default());
                }
            };
            match self.preview.next(self.claimant, goals) {
                Next::Read(unread) => {
                    for (reading, requested) in unread {
                        self.source.read(reading, &requested, &mut self.preview.observed).await?;
                    }
                }
                Next::Again => {}
                Next::Rest(rest) => break self.preview.end(rest),
            }
        };
        self.plan.sections.push(Section { object: title(object), when: when.to_owned(), outlook });
        Ok(())
    }

    async fn machine(
        &mut self,
        machine: &Machine,
        cluster: ClusterScope<'_>,
        skus: &Skus,
        when: &str,
    ) -> anyhow::Result<()> {
        let object = &machine.object;
        let mut spec: AzureMachineSpec = spec_of(object)?;
        let annotations = texts(object, "/metadata/annotations");
        let owner = machine::OwnerMachine {
            version: machine.version.as_deref(),
            failure_domain: machine.zone.as_deref(),
            labels: &machine.labels,
        };
        let name = text(object, "/metadata/name");
        let role = MachineScope {
            cluster,
            name,
            spec: &spec.clone(),
            annotations: &annotations,
            owner,
            earlier: &[],
        }
        .role();
        if let Err(why) = machine::complete(&mut spec, cluster, role) {
            self.plan.refuse(object, why);
            return Ok(());
        }
        let scope =
            MachineScope { cluster, name, spec: &spec, annotations: &annotations, owner, earlier: &[] };
        let image = scope.image().map_err(|error| error.to_string());
        let Some(inputs) = self.inputs(object, image, spec.vm_size.as_deref(), skus) else {
            return Ok(());
        };
        let when = match &machine.maker {
            Some(maker) => format!("{when}; of {maker}, its name is an example"),
            None => String::new(),
        };
        let goals = |observed: &ObservedResources| {
            machine::goals(&scope, &inputs, observed).map_err(|error| error.to_string())
        };
        self.foresee(object, &when, goals).await
    }

    async fn pool(&mut self, pool: &Pool, cluster: ClusterScope<'_>, skus: &Skus) -> anyhow::Result<()> {
        let object = &pool.object;
        let mut spec: AzureMachinePoolSpec = spec_of(object)?;
        if let Err(why) = pool::complete(&mut spec, cluster) {
            self.plan.refuse(object, why);
            return Ok(());
        }
        let annotations = texts(object, "/metadata/annotations");
        let owner = pool::OwnerMachinePool {
            version: pool.version.as_deref(),
            replicas: pool.replicas,
            failure_domains: &pool.zones,
            annotations: &pool.annotations,
        };
        let name = text(object, "/metadata/name");
        let scope = PoolScope { cluster, name, spec: &spec, annotations: &annotations, owner };
        let image = scope.image().map_err(|error| error.to_string());
        let size = spec.template.as_ref().and_then(|template| template.vm_size.as_deref());
        let Some(inputs) = self.inputs(object, image, size, skus) else { return Ok(()) };
        let goals = |observed: &ObservedResources| {
            pool::goals(&scope, &inputs, observed, None).map_err(|error| error.to_string())
        };
        if matches!(self.source, Source::Real(_)) {
            self.plan.notes.push(format!(
                "{}: which machines of a scale set that exists are replaced is not planned",
                title(object)
            ));
        }
        self.foresee(object, "once the control plane answers", goals).await
    }

    /// The inputs from which machines are created; `None` if the image or the size is refused.
    fn inputs(
        &mut self,
        object: &Value,
        image: Result<Image, String>,
        size: Option<&str>,
        skus: &Skus,
    ) -> Option<MachineInputs> {
        let size = skus.get(size.unwrap_or_default(), VIRTUAL_MACHINES).map_err(|error| error.to_string());
        match (image, size) {
            (Ok(image), Ok(size)) => Some(MachineInputs {
                bootstrap: Secret::new(BOOTSTRAP),
                password: Secret::new(""),
                image,
                size: size.clone(),
                skus: Arc::new(skus.clone()),
            }),
            (Err(why), _) | (_, Err(why)) => {
                self.plan.refuse(object, why);
                None
            }
        }
    }
}

fn spec_of<T: DeserializeOwned>(object: &Value) -> anyhow::Result<T> {
    serde_json::from_value(object["spec"].clone())
        .with_context(|| format!("{} cannot be read", title(object)))
}
