//! Whether the cluster has load balancers already, under another name than the one that it is given.
//!
//! Load balancers bear the cluster's name, so a wrong `--cluster-name` makes everything a second time.
//! The names of frontends follow from the UIDs of Services: a load balancer that holds some of this cluster's
//! is this cluster's, whatever it is called.

use std::fmt;
use std::sync::Arc;

use azure_types::{LoadBalancer, ResourceId};
use k8s::{ObjectKey, Service};

use crate::cluster::Cluster;
use crate::names::{base_name, is_frontend_of};

/// Load balancers that serve this cluster's Services and are not named after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherName {
    /// The name that the cluster is given.
    pub given: String,
    /// The names that load balancers say it has, without `-internal`, in order and once each.
    pub found: Vec<String>,
    /// The Services that those load balancers serve, in order.
    pub services: Vec<ObjectKey>,
    /// The setting that chooses the name.
    setting: &'static str,
}

impl fmt::Display for OtherName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { given, found, services, setting } = self;
        let such_as = services.first().map(ToString::to_string).unwrap_or_default();
        let (names, number) = (found.join("`, `"), services.len());
        let those = match number {
            1 => such_as,
            _ => format!("{number} Services of this cluster, such as {such_as}"),
        };
        write!(
            f,
            "load balancers of the name `{names}` already serve {those}; with {setting}={given} they are \
             made a second time: set {setting}={}",
            found.first().map(String::as_str).unwrap_or_default()
        )
    }
}

/// Finds load balancers of another name that hold frontends of this cluster's Services.
pub fn other_name(
    cluster: &Cluster,
    services: &[Arc<Service>],
    load_balancers: &[LoadBalancer],
) -> Option<OtherName> {
    let own: Vec<ResourceId> = cluster.balancers().iter().map(|one| cluster.load_balancer_id(one)).collect();
    let (mut found, mut keys) = (Vec::new(), Vec::new());
    for load_balancer in load_balancers {
        let Some(id) = load_balancer.id.as_ref().filter(|id| !own.contains(id)) else { continue };
        let properties = load_balancer.properties.iter();
        let names: Vec<&str> = properties
            .flat_map(|properties| properties.frontend_ip_configurations.iter().flatten())
            .filter_map(|frontend| frontend.name.as_deref())
            .collect();
        let served = services.iter().filter(|service| {
            base_name(service.uid()).is_some_and(|base| names.iter().any(|name| is_frontend_of(name, &base)))
        });
        let before = keys.len();
        keys.extend(served.map(|service| service.key()));
        if keys.len() > before {
            found.push(id.name().strip_suffix("-internal").unwrap_or(id.name()).to_owned());
        }
    }
    found.sort();
    found.dedup();
    keys.sort();
    keys.dedup();
    let configured = &cluster.config.load_balancer_name;
    let (given, setting) = match configured.is_empty() {
        true => (cluster.name.clone(), "--cluster-name"),
        false => (configured.clone(), "loadBalancerName"),
    };
    (!found.is_empty()).then_some(OtherName { given, found, services: keys, setting })
}
