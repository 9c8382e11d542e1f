//! The objects of ours that own objects of the operator.

use std::collections::BTreeSet;

use serde_json::Value;

use super::kind::{OperatorKind, kinds};

/// The group of our kinds.
const GROUP: &str = "infrastructure.cluster.x-k8s.io";

/// The kinds of owners, and the kinds of objects that the established provider creates for each. Objects for raw
/// resources may have any kind: an annotation of the owner names theirs.
const OWNERS: [(&str, &[&str]); 6] = [
    (
        "AzureCluster",
        &[
            "ResourceGroup",
            "VirtualNetwork",
            "VirtualNetworksSubnet",
            "NatGateway",
            "BastionHost",
            "PrivateEndpoint",
        ],
    ),
    (
        "AzureManagedControlPlane",
        &[
            "ResourceGroup",
            "VirtualNetwork",
            "VirtualNetworksSubnet",
            "ManagedCluster",
            "PrivateEndpoint",
            "FleetsMember",
            "Extension",
        ],
    ),
    ("AzureManagedMachinePool", &["ManagedClustersAgentPool"]),
    ("AzureASOManagedCluster", &[]),
    ("AzureASOManagedControlPlane", &[]),
    ("AzureASOManagedMachinePool", &[]),
];

/// Whether an owner reference names an object of ours.
pub(super) fn is_ours(reference: &Value) -> bool {
    let group = reference["apiVersion"].as_str().and_then(|version| version.split('/').next());
    group == Some(GROUP) && OWNERS.iter().any(|(kind, _)| reference["kind"] == *kind)
}

/// Whether the referenced owner declares the policies of its objects itself.
pub(super) fn declares_policies(reference: &Value) -> bool {
    OWNERS.iter().any(|(kind, created)| reference["kind"] == *kind && created.is_empty())
}

/// An object of ours that may own objects of the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorOwner {
    /// Its kind.
    pub kind: &'static str,
    /// Its UID.
    pub uid: String,
    /// The value of its annotation [`crate::raw::OWNED_KINDS`].
    pub owned_kinds: String,
}

impl OperatorOwner {
    /// Whether it may own objects of this kind, so that they have to be known.
    pub fn may_own(&self, kind: &OperatorKind) -> bool {
        let created =
            OWNERS.iter().find(|(owner, _)| *owner == self.kind).map_or(&[][..], |(_, kinds)| *kinds);
        created.contains(&kind.kind)
            || self.owned_kinds.split(';').any(|owned| {
                let mut parts = owned.splitn(3, '.');
                (parts.next(), parts.nth(1)) == (Some(kind.kind), Some(kind.group))
            })
    }

    /// The definitions of the kinds that it may own.
    pub fn definitions(&self) -> BTreeSet<String> {
        kinds().iter().filter(|kind| self.may_own(kind)).map(OperatorKind::definition).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_has_the_kinds_that_are_created_for_it() {
        let owner = |kind, owned: &str| OperatorOwner { kind, uid: "u".into(), owned_kinds: owned.into() };
        let of = |owner: OperatorOwner| {
            kinds().iter().filter(|kind| owner.may_own(kind)).map(|kind| kind.kind).collect::<Vec<_>>()
        };
        assert_eq!(of(owner("AzureCluster", "")).len(), 6);
        assert_eq!(of(owner("AzureManagedControlPlane", "")).len(), 7);
        assert_eq!(of(owner("AzureManagedMachinePool", "")), ["ManagedClustersAgentPool"]);
        let owned = "ManagedCluster.v1api20240901.containerservice.azure.com;Registry.v1api20230701.containerregistry.azure.com;\
                     NatGateway.v1.example.com;;x";
        assert_eq!(of(owner("AzureASOManagedControlPlane", owned)), ["ManagedCluster", "Registry"]);
        assert_eq!(of(owner("AzureASOManagedCluster", "")), Vec::<&str>::new());
    }
}
