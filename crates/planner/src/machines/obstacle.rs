//! What keeps a node out of a backend pool, and whether it is temporary.

use std::fmt;

use azure_types::ResourceId;

use crate::model::balancer::without_suffix;
use crate::model::{Cluster, Family};

/// Why a node is not in a pool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Azure reports no instance of its scale set, or no interface of its virtual machine: it is being created or
    /// deleted.
    NoMachine,
    /// Its machine is not running; it joins once it runs.
    NotRunning,
    /// The primary interface of its machine has no address of this family.
    NoAddress(Family),
    /// Its virtual machine has several network interfaces, and none is marked as primary.
    NoPrimaryInterface,
    /// Azure could not finish the last write of its virtual machine's network interface, and refuses further writes.
    InterfaceFailed,
    /// The load balancer is a basic one, which does not reach machines outside of uniform scale sets.
    BasicLoadBalancer,
    /// Azure refuses the write by which its machine would join; with Azure's message.
    Refused(String),
    /// Its machine is in pools of another load balancer.
    OtherLoadBalancer {
        /// That load balancer's name.
        name: String,
        /// The remedy, which leaves the machine in that load balancer.
        remedy: String,
    },
}

impl Reason {
    /// Its machine is in pools of another load balancer, which may be its route to the internet. The remedy moves the
    /// Services to that load balancer, or adds the machine by its address.
    pub(crate) fn other_load_balancer(cluster: &Cluster, balancer: &ResourceId) -> Self {
        let config = &cluster.config;
        let name = without_suffix(balancer.name());
        let remedy = if config.uses_multiple_standard_load_balancers() {
            format!(
                "add an entry {name} to multipleStandardLoadBalancerConfigurations in the cloud configuration"
            )
        } else if config.uses_standard_load_balancer() {
            let own = cluster.network_group(config.load_balancer_resource_group());
            let group = balancer.parent().filter(|group| *group != own);
            let group = group.map(|group| format!(" and loadBalancerResourceGroup to {}", group.name()));
            format!(
                "set loadBalancerName to {name}{} in the cloud configuration, so that Services have their frontends on \
                 it, or set loadBalancerBackendPoolConfigurationType to nodeIP, so that pools hold IP addresses",
                group.unwrap_or_default()
            )
        } else {
            "set loadBalancerSku to standard and loadBalancerBackendPoolConfigurationType to nodeIP in the cloud \
             configuration, so that pools hold IP addresses"
                .to_owned()
        };
        Self::OtherLoadBalancer { name: balancer.name().to_owned(), remedy }
    }

    /// Whether the reason may pass without a change of the machine, so that a retry makes sense.
    pub fn may_pass(&self) -> bool {
        self.is_ordinary() || matches!(self, Self::InterfaceFailed | Self::Refused(_))
    }

    /// Whether the reason is part of every start and stop of a machine, so that no notice is needed.
    pub(super) fn is_ordinary(&self) -> bool {
        matches!(self, Self::NoMachine | Self::NotRunning)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMachine => f.write_str("Azure shows no machine for them"),
            Self::NotRunning => f.write_str("their machines do not run"),
            Self::NoAddress(family) => write!(
                f,
                "the primary network interface of their machines has no {family} address: add an {family} IP \
                 configuration to it"
            ),
            Self::NoPrimaryInterface => f.write_str(
                "their machines have several network interfaces, and none is primary: mark one as primary",
            ),
            Self::InterfaceFailed => f.write_str(
                "the network interface of their machines is in provisioning state Failed: repair it in Azure",
            ),
            Self::BasicLoadBalancer => f.write_str(
                "a basic load balancer reaches no machines outside of uniform scale sets: set loadBalancerSku to \
                 standard",
            ),
            Self::Refused(words) => {
                write!(f, "Azure does not let their machines join its backend pools: {words}")
            }
            Self::OtherLoadBalancer { name, remedy } => write!(
                f,
                "their machines are in backend pools of load balancer {name}, and their network interfaces join no \
                 other. Leave them there, because they may reach the internet through it: {remedy}"
            ),
        }
    }
}
