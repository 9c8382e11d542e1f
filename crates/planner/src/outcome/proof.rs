//! Proofs that several kinds of resources share.

use azure_types::ResourceId;
use k8s::ObjectKey;
use ownership::{Evidence, Owner, Proof};

use super::change::Change;
use crate::model::{Balancer, Cluster};

/// A Service of the cluster as an owner.
pub(crate) fn service(cluster: &Cluster, key: &ObjectKey) -> Owner {
    Owner {
        kind: "Service",
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        cluster: cluster.name.clone(),
    }
}

/// The cluster itself as an owner: of resources that belong to no single Service.
pub(crate) fn cluster(cluster: &Cluster) -> Owner {
    let (namespace, of) = (String::new(), String::new());
    Owner { kind: "cluster", namespace, name: cluster.name.clone(), cluster: of }
}

/// A name that is made of the UID of a Service.
pub(crate) fn named(name: &str) -> Evidence {
    Evidence::Name { name: name.to_owned(), rule: "the UID of the Service" }
}

/// The cluster may write the resource that a key of azure.json names.
pub(crate) fn configured(of: &Cluster, key: &str) -> Proof {
    Proof::new(cluster(of), Evidence::Declared { key: key.to_owned() })
}

/// A load balancer is the cluster's because its name is derived from the cluster's, because the configuration names it,
/// or, if neither applies any more, because it has the cluster's pool.
pub(crate) fn load_balancer(of: &Cluster, balancer: &Balancer) -> Proof {
    let rule = "the cluster's name";
    let config = &of.config;
    if !of.is_configured(balancer) {
        let name = of.pool_name(crate::model::Family::V4);
        return Proof::new(cluster(of), Evidence::Name { name, rule });
    }
    if config.uses_multiple_standard_load_balancers() {
        return configured(of, "multipleStandardLoadBalancerConfigurations");
    }
    if !config.load_balancer_name.is_empty() {
        return configured(of, "loadBalancerName");
    }
    Proof::new(cluster(of), Evidence::Name { name: balancer.name.clone(), rule })
}

/// Only the membership of machines in pools of the cluster is written.
pub(crate) fn memberships(of: &Cluster, changes: &[Change]) -> Vec<Proof> {
    let pool_of = |change: &Change| match change {
        Change::Membership { pool, load_balancer, .. } => {
            let name = Evidence::Name { name: pool.clone(), rule: "the cluster's name" };
            Some(Proof::new(cluster(of), name).of_part(format!("backend pool {load_balancer}/{pool}")))
        }
        _ => None,
    };
    changes.iter().filter_map(pool_of).collect()
}

/// A part of a resource that is proven to be the cluster's.
pub(crate) fn within(of: &Cluster, resource: &ResourceId, part: String) -> Proof {
    Proof::new(cluster(of), Evidence::Within { resource: resource.to_string() }).of_part(part)
}
