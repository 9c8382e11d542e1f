//! The kinds of the operator's objects that objects of ours may own.

use std::sync::LazyLock;

/// A kind of the operator's objects.
#[derive(Debug, PartialEq, Eq)]
pub struct OperatorKind {
    /// Its group.
    pub group: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Its plural.
    pub plural: String,
}

impl OperatorKind {
    fn of(group: &'static str, kind: &'static str) -> Self {
        Self { group, kind, plural: plural(kind) }
    }

    /// The name of its CustomResourceDefinition.
    pub fn definition(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}

/// The kinds that the established provider creates for an AzureCluster.
const FOR_CLUSTERS: [(&str, &str); 6] = [
    ("resources.azure.com", "ResourceGroup"),
    ("network.azure.com", "VirtualNetwork"),
    ("network.azure.com", "VirtualNetworksSubnet"),
    ("network.azure.com", "NatGateway"),
    ("network.azure.com", "BastionHost"),
    ("network.azure.com", "PrivateEndpoint"),
];

static KINDS: LazyLock<Vec<OperatorKind>> = LazyLock::new(|| {
    let first = FOR_CLUSTERS.map(|(group, kind)| OperatorKind::of(group, kind));
    let is_first = |kind: &&operator_resources::Kind| FOR_CLUSTERS.contains(&(kind.group, kind.kind));
    let served = operator_resources::KINDS.iter().filter(|kind| !is_first(kind));
    first.into_iter().chain(served.map(|kind| OperatorKind::of(kind.group, kind.kind))).collect()
});

/// All kinds: those that the established provider creates for clusters, and those that raw resources may have.
pub fn kinds() -> &'static [OperatorKind] {
    &KINDS
}

/// The plural of a kind, as the operator forms it.
fn plural(kind: &str) -> String {
    let word = kind.to_ascii_lowercase();
    match word.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u'])) {
        Some(stem) => format!("{stem}ies"),
        None if word.ends_with(['s', 'x']) => format!("{word}es"),
        None => format!("{word}s"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_definitions_have_the_names_that_the_operator_gives_them() {
        let names: BTreeSet<String> = kinds().iter().map(OperatorKind::definition).collect();
        assert_eq!(names.len(), kinds().len());
        for name in [
            "natgateways.network.azure.com",
            "publicipaddresses.network.azure.com",
            "publicipprefixes.network.azure.com",
            "userassignedidentities.managedidentity.azure.com",
            "registries.containerregistry.azure.com",
            "fleetsupdatestrategies.containerservice.azure.com",
            "managedclustersagentpools.containerservice.azure.com",
            "maintenanceconfigurations.containerservice.azure.com",
            "fleetsmembers.containerservice.azure.com",
            "extensions.kubernetesconfiguration.azure.com",
        ] {
            assert!(names.contains(name), "{name}");
        }
    }
}
