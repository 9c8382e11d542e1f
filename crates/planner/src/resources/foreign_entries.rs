//! Entries of unknown origin next to a Service's parts, in resources that may be shared with other clusters: they stay,
//! and the Service's owner is informed.
//!
//! Another cluster of the same name lists its Services in the tag of a public IP that both use, and another one behind
//! the same security group adds its addresses to the same rules. A manual edit of Azure looks the same.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{PublicIpAddress, SecurityGroup};
use k8s::{Notice, ObjectKey};

use super::public_ip;
use super::security_group::{self, ClusterUsage, RuleWithForeign};
use crate::model::Cluster;
use crate::outcome::information;
use crate::service::ServiceIntent;

/// The event's reason.
const REASON: &str = "SharedWithUnknown";

/// The entries found in resources that Services share, collected once for all Services.
#[derive(Debug, Default)]
pub struct ForeignEntries {
    group: String,
    rules: Vec<RuleWithForeign>,
    node_addresses: Arc<BTreeSet<IpAddr>>,
}

impl ForeignEntries {
    /// Scans the rules of a security group.
    pub fn of_rules(group: &SecurityGroup, usage: &ClusterUsage) -> Self {
        let name = group.name.clone().unwrap_or_default();
        let rules = security_group::rules_with_foreign(group, usage);
        Self { group: name, rules, node_addresses: Arc::clone(&usage.node_addresses) }
    }

    /// The notices for a Service's owner. `public_ips` are the ones that may concern the Service, `published` the
    /// addresses in its status, and `exists` returns whether the cluster has a Service.
    pub fn beside(
        &self,
        cluster: &Cluster,
        service: &ServiceIntent,
        published: &BTreeSet<IpAddr>,
        public_ips: &[Arc<PublicIpAddress>],
        exists: impl Fn(&ObjectKey) -> bool,
    ) -> Vec<Notice> {
        let owner = service.removal();
        let mut messages = Vec::new();
        for one in public_ips {
            for user in public_ip::foreign_users(cluster, owner, one, &exists) {
                messages.push(format!(
                    "the tag {} of public IP {} also names {user}, which is no Service of this cluster: it stays, \
                     because another cluster may use the address; if none does, remove it from the tag",
                    public_ip::SERVICE_TAG,
                    public_ip::name_of(one),
                ));
            }
        }
        let is_own = |address: &IpAddr| {
            published.contains(address)
                || owner.additional_addresses.contains(address)
                || service.arrives_at_nodes() && self.node_addresses.contains(address)
        };
        for rule in self.rules.iter().filter(|rule| rule.own.iter().any(is_own)) {
            messages.push(format!(
                "rule {} of security group {} also opens {}, which no Service or node of this cluster has: it stays, \
                 because another cluster with the same rule may have it; if none has, remove it from the rule",
                rule.name,
                self.group,
                rule.foreign.join(", "),
            ));
        }
        messages.into_iter().map(|message| information(&owner.key, REASON, message)).collect()
    }
}
