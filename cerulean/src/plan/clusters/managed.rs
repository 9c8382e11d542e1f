//! The plan of a cluster that Azure manages: an AzureManagedControlPlane and its pools, also those of self-managed machines
//! that join it.

use std::collections::BTreeMap;

use capz_api::Gates;
use capz_api::azure_managed_control_plane::AzureManagedControlPlaneSpec;
use capz_api::azure_managed_machine_pool::AzureManagedMachinePoolSpec;
use capz_planner::agent_pool::{self, AgentPool};
use capz_planner::cluster::{CLUSTER_ID, Memory, dns_suffix};
use capz_planner::managed_cluster::{self, ManagedScope, as_cluster, joined};
use capz_planner::sku::Skus;
use capz_planner::{Action, ClusterScope, ObservedResources, custom_headers, operator};
use serde_json::Value;

use super::azure::Source;
use super::managed_objects::Managed;
use super::planner::Planner;
use super::report::ClustersPlan;
use crate::plan::values::{optional, spec_of, text, texts};

/// The parts of an AzureManagedMachinePool and of its MachinePool.
struct Pool<'a> {
    object: &'a Value,
    spec: AzureManagedMachinePoolSpec,
    annotations: BTreeMap<String, String>,
    version: Option<String>,
    replicas: Option<i32>,
}

impl Pool<'_> {
    fn declared(&self) -> AgentPool<'_> {
        AgentPool {
            name: text(self.object, "/metadata/name"),
            spec: &self.spec,
            annotations: &self.annotations,
            version: self.version.as_deref(),
            replicas: self.replicas,
        }
    }
}

/// Plans a cluster. `skus` are those of its region; without them no self-managed machines join it.
///
/// # Errors
/// Azure cannot be read.
pub async fn plan(
    source: &Source,
    declared: &Managed,
    skus: Option<&Skus>,
    subscription: Option<&str>,
    plan: &mut ClustersPlan,
) -> anyhow::Result<()> {
    let object = &declared.control_plane;
    let spec: AzureManagedControlPlaneSpec = spec_of(object)?;
    let environment = spec.azure_environment.as_deref().unwrap_or_default();
    let Some(dns_suffix) = dns_suffix(environment) else {
        plan.refuse(object, format!("azureEnvironment {environment:?} is not a cloud"));
        return Ok(());
    };
    let Some(subscription) = plan.subscription(object, spec.subscription_id.as_deref(), subscription) else {
        return Ok(());
    };
    let annotations = texts(object, "/metadata/annotations");
    let of_infrastructure = declared.infrastructure.as_ref().map(|it| texts(it, "/metadata/annotations"));
    let headers = custom_headers::of(of_infrastructure.iter().chain([&annotations]));
    let kept = operator::kept_of(&annotations);
    let name = text(object, "/metadata/name");
    let network = as_cluster(&spec, name);
    let scope = ManagedScope {
        cluster: ClusterScope {
            cluster: &declared.cluster,
            id: annotations.get(CLUSTER_ID).map(String::as_str),
            marked_only: false,
            kept: &kept,
            namespace: text(object, "/metadata/namespace"),
            name,
            spec: &network,
            subscription: &subscription,
            api_server_port: declared.port,
            zones: &[],
            dns_suffix,
            gates: Gates::default(),
        },
        spec: &spec,
        service_ranges: &declared.services,
        pod_ranges: &declared.pods,
        headers: &headers,
        auto_upgrade_version: object.pointer("/status/autoUpgradeVersion").and_then(Value::as_str),
    };
    let mut pools = Vec::with_capacity(declared.pools.len());
    for it in &declared.pools {
        let replicas = it.owner.pointer("/spec/replicas").and_then(Value::as_i64);
        pools.push(Pool {
            object: &it.object,
            spec: spec_of(&it.object)?,
            annotations: texts(&it.object, "/metadata/annotations"),
            version: optional(&it.owner, "/spec/template/spec/version"),
            replicas: replicas.and_then(|replicas| replicas.try_into().ok()),
        });
    }
    let all: Vec<AgentPool<'_>> = pools.iter().map(Pool::declared).collect();
    let memory = Memory::of(&annotations);
    let mut planner = Planner::new(source, plan);
    let goals = |observed: &ObservedResources| {
        managed_cluster::goals(scope, &all, &memory, observed).map_err(|error| error.to_string())
    };
    let Some(section) = planner.foresee(scope.claimant(), object, "", goals).await? else { return Ok(()) };
    let is_new = section
        .outlook
        .steps()
        .any(|it| it.step.action == Action::Create && it.step.target == scope.managed_cluster());
    for pool in &pools {
        let pool_goals = |observed: &ObservedResources| {
            agent_pool::goals(scope, &pool.declared(), &memory, observed).map_err(|error| error.to_string())
        };
        let when = "once the cluster is ready";
        let claimant = capz_planner::Claimant { kind: agent_pool::KIND, ..scope.claimant() };
        if let Some(section) = planner.foresee(claimant, pool.object, when, pool_goals).await? {
            section.created_along = is_new;
        }
    }
    if let Some(skus) = skus {
        let own = joined(&spec, name);
        let cluster = ClusterScope { spec: &own, ..scope.cluster };
        for pool in &declared.joining {
            planner.pool(pool, cluster, skus, "once the cluster is ready").await?;
        }
    }
    Ok(())
}
