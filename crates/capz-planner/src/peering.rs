//! Peerings. A peering has no tags, and its name contains the names of two networks without their groups: two networks
//! of one name that are peered with a third one need the same name there. The network that a peering leads to
//! identifies its owner.

use azure_types::ResourceId;
use ownership::{Evidence, Ownership, Rival};
use serde_json::Value;

use crate::claimant::Claimant;
use crate::document::id_of;
use crate::noun::noun;

const REMOTE: &str = "/properties/remoteVirtualNetwork/id";

/// The owner of a peering that the cluster has recorded. `own` is the network of the cluster, and `whose_own` the
/// ownership of that.
pub(crate) fn owner(
    claimant: Claimant<'_>,
    id: &ResourceId,
    held: &Value,
    own: &ResourceId,
    whose_own: Ownership,
) -> Ownership {
    if claimant.marked_only {
        return Ownership::Unproven("another cluster takes precedence, and may have created it".to_owned());
    }
    // A network that the cluster merely uses is not proven, and a deleted one has no owner: the record counts.
    if matches!(whose_own, Ownership::Disputed(_) | Ownership::Unknown) {
        return whose_own;
    }
    match remote(held) {
        Some(other) if !id.is_within(own) && other != *own => Ownership::Disputed(led_to(&other)),
        _ => Ownership::Proven(claimant.proof(Claimant::recorded())),
    }
}

/// The network that a peering leads to, if it is another one than desired.
pub(crate) fn rival(wanted: &Value, held: &Value) -> Option<Rival> {
    let other = remote(held)?;
    (remote(wanted)? != other).then(|| led_to(&other))
}

fn led_to(other: &ResourceId) -> Rival {
    Rival {
        owner: format!("another {} {}", noun(other), other.name()),
        evidence: Evidence::Refers { resource: other.to_string() },
    }
}

fn remote(document: &Value) -> Option<ResourceId> {
    id_of(document.pointer(REMOTE)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn network(group: &str, name: &str) -> ResourceId {
        ResourceId::group("s", group).resource("Microsoft.Network", "virtualNetworks", name)
    }

    /// A peering is the cluster's if it lies in the cluster's network or leads to it.
    #[test]
    fn the_network_that_a_half_leads_to_says_whose_it_is() {
        let (own, twin, hub) = (network("a", "net"), network("b", "net"), network("hub", "hub"));
        let there = hub.child("virtualNetworkPeerings", "hub-To-net");
        let here = own.child("virtualNetworkPeerings", "net-To-hub");
        let claimant = Claimant { id: Some("1"), ..Claimant::from("c") };
        let second = Claimant { marked_only: true, ..claimant };
        let proven = || Ownership::Proven(claimant.proof(Claimant::recorded()));
        let used = || Ownership::Unproven("it is a user's".to_owned());
        let taken = || Ownership::Disputed(led_to(&twin));
        for (claimant, id, leads_to, whose_own, expected) in [
            (claimant, &there, &own, proven(), "proven"),
            (claimant, &there, &own, used(), "proven"),
            (claimant, &there, &twin, proven(), "disputed"),
            (claimant, &there, &own, taken(), "disputed"),
            (claimant, &here, &hub, proven(), "proven"),
            (claimant, &here, &twin, proven(), "proven"),
            (claimant, &here, &hub, taken(), "disputed"),
            (claimant, &there, &own, Ownership::Unknown, "unknown"),
            (second, &there, &own, proven(), "unproven"),
        ] {
            let held = json!({ "properties": { "remoteVirtualNetwork": { "id": leads_to.as_str().to_uppercase() } } });
            let found = match owner(claimant, id, &held, &own, whose_own) {
                Ownership::Proven(_) => "proven",
                Ownership::Disputed(_) => "disputed",
                Ownership::Unproven(_) => "unproven",
                Ownership::Unknown => "unknown",
            };
            assert_eq!(found, expected, "{id} leads to {leads_to}");
        }
        let words = claimant.disputed("peering hub/hub-To-net", &led_to(&twin));
        assert!(words.contains(twin.as_str()) && words.contains("spec.networkSpec.vnet.name"), "{words}");
    }
}
