//! Pools of single Services: with several load balancers, a Service whose traffic stays on the node at which it arrives
//! (`externalTrafficPolicy: Local`) has a pool of its own with only the nodes that have its endpoints (6.7).
//!
//! A pool is set to the endpoints that are known at the moment of the write. There is no list of pending changes, so
//! none is lost, and none is applied to a load balancer that the Service has left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s::{ObjectKey, Service};

use crate::model::names::{self, MAX_LENGTH};
use crate::model::{Cluster, Family};
use crate::outcome::Refusal;

/// The nodes on which each Service has endpoints, whether ready or not: probes decide which ones serve. A Service that
/// is not in the map has no endpoints.
pub type EndpointNodes = BTreeMap<ObjectKey, BTreeSet<String>>;

/// A Service that has pools of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalService {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The base name of its rules, in lower case.
    pub(crate) base_name: String,
    /// The nodes with its endpoints.
    pub(crate) nodes: BTreeSet<String>,
}

/// The name of the pool of a Service and a family. Services of different namespaces may have the same pool name:
/// `a-b/c` and `a/b-c`.
pub fn name(service: &ObjectKey, family: Family) -> String {
    let name = format!("{}-{}", service.namespace, service.name).to_lowercase();
    match family {
        Family::V4 => name,
        Family::V6 => name + "-ipv6",
    }
}

/// The Services that have pools of their own, with the nodes that belong in them.
pub fn local_services(
    cluster: &Cluster,
    services: &[Arc<Service>],
    nodes_of: impl Fn(&ObjectKey) -> BTreeSet<String>,
) -> Vec<LocalService> {
    let local = services.iter().filter(|service| is_local(cluster, service) && service.is_to_be_served());
    local
        .filter_map(|service| {
            let key = service.key();
            let base_name = names::base_name(service.uid())?.to_lowercase();
            Some(LocalService { nodes: nodes_of(&key), key, base_name })
        })
        .collect()
}

/// Whether a Service has pools of its own.
pub fn is_local(cluster: &Cluster, service: &Service) -> bool {
    cluster.has_local_pools() && service.is_local()
}

/// Refuses a Service that cannot have pools of its own, before anything is created for it.
pub(crate) fn check(cluster: &Cluster, service: &Service, families: &[Family]) -> Result<(), Refusal> {
    if !is_local(cluster, service) {
        return Ok(());
    }
    for family in families {
        let pool = name(&service.key(), *family);
        if pool.len() > MAX_LENGTH {
            return Err(Refusal::PoolNameTooLong { pool, limit: MAX_LENGTH });
        }
        if cluster.is_pool_of_nodes(&pool) {
            return Err(Refusal::PoolNameTaken { pool, holder: "the cluster's nodes".to_owned() });
        }
    }
    Ok(())
}
