//! The plans of clusters with machines of their own: an AzureCluster, its machines and pools.

use std::sync::Arc;

use capz_api::azure_cluster::AzureClusterSpec;
use capz_api::azure_machine::AzureMachineSpec;
use capz_api::azure_machine_pool::AzureMachinePoolSpec;
use capz_api::{Gates, machine::Image};
use capz_planner::cluster::{self, CLUSTER_ID, Memory, dns_suffix};
use capz_planner::machine::{self, MachineInputs, MachineScope};
use capz_planner::operator;
use capz_planner::pool::{self, PoolScope};
use capz_planner::sku::{Skus, VIRTUAL_MACHINES};
use capz_planner::{ClusterScope, ObservedResources};
use cloud_config::Secret;
use serde_json::Value;

use super::azure::Source;
use super::objects::{Declared, Machine};
use super::own_pools::Pool;
use super::planner::Planner;
use super::report::ClustersPlan;
use crate::plan::values::{spec_of, text, texts, title};

/// The default port.
const API_SERVER_PORT: i32 = 6443;
/// A placeholder for bootstrap data, which is created later: `example`, in base64.
const BOOTSTRAP: &str = "ZXhhbXBsZQ==";

/// Plans a cluster.
///
/// # Errors
/// Azure cannot be read.
pub async fn plan(
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
    let Some(subscription) =
        plan.subscription(&declared.azure, spec.subscription_id.as_deref(), subscription)
    else {
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
    let mut planner = Planner::new(source, plan);
    planner.foresee(scope.claimant(), &declared.azure, "", |_| Ok(cluster::goals(scope, &memory))).await?;
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
        planner.pool(pool, scope, skus, "once the control plane answers").await?;
    }
    Ok(())
}

impl Planner<'_> {
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
        self.foresee(cluster.claimant(), object, &when, goals).await.map(drop)
    }

    /// Plans a pool of self-managed machines, whose turn comes `when`.
    ///
    /// # Errors
    /// Azure cannot be read.
    pub async fn pool(
        &mut self,
        pool: &Pool,
        cluster: ClusterScope<'_>,
        skus: &Skus,
        when: &str,
    ) -> anyhow::Result<()> {
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
        self.foresee(cluster.claimant(), object, when, goals).await.map(drop)
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
