//! Clusters of one name that would have the same resources: names of resources are derived from the cluster's name, and
//! the owner tag contains the name. Of two such clusters in one management cluster one takes precedence, and the other
//! one is refused before it writes anything.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::claimant::MANAGED_CONTROL_PLANE;

/// The claim of an AzureCluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The namespace of the AzureCluster.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its UID.
    pub uid: &'a str,
    /// The name of the Cluster that it belongs to.
    pub cluster: &'a str,
    /// Its ID, if it has been reconciled.
    pub id: Option<&'a str>,
    /// Whether it has recorded resources in Azure, or the established provider has reconciled it.
    pub made: bool,
    /// Its creation time: seconds since 1970.
    pub created: i64,
    /// The subscription in effect.
    pub subscription: &'a str,
    /// The names of its resource groups: its own, and that of its network.
    pub groups: BTreeSet<String>,
}

impl Claim<'_> {
    fn is_of_same_object(&self, other: &Self) -> bool {
        (self.namespace, self.name) == (other.namespace, other.name)
    }

    fn is_against(&self, other: &Self) -> bool {
        let is_copy = self.id.is_some() && self.id == other.id;
        let same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
        // Keys of Azure's tags are not case-sensitive.
        same(self.cluster, other.cluster)
            && (is_copy
                || (same(self.subscription, other.subscription)
                    && self.groups.iter().any(|one| other.groups.iter().any(|it| same(one, it)))))
    }

    /// The lowest rank takes precedence: a cluster that has created resources, then one that got its ID from its own
    /// UID, then the oldest.
    fn rank(&self) -> impl Ord + use<'_> {
        let is_original = self.id == Some(self.uid);
        (Reverse(self.made), Reverse(self.made && is_original), self.created, self.uid)
    }
}

/// The other cluster of the management cluster that takes precedence over this one; `None` if this one does.
pub fn rival<'c, 'a>(own: &Claim<'a>, others: &'c [Claim<'a>]) -> Option<&'c Claim<'a>> {
    others
        .iter()
        .filter(|other| !other.is_of_same_object(own) && other.is_against(own) && other.rank() < own.rank())
        .min_by(|one, other| one.rank().cmp(&other.rank()))
}

impl Claim<'_> {
    /// Why a cluster of the kind `own` is refused in favor of this one, which is of the kind `kind`, and what to do.
    pub fn refusal(&self, kind: &str, own: &str) -> String {
        let Self { namespace, name, cluster, .. } = self;
        let members = match own {
            MANAGED_CONTROL_PLANE => {
                "(spec.resourceGroupName, and spec.virtualNetwork.resourceGroup if that is set)"
            }
            _ => "(spec.resourceGroup, and spec.networkSpec.vnet.resourceGroup if that is set)",
        };
        format!(
            "{kind} {namespace}/{name} comes first, which belongs to a Cluster with the same name, {cluster}, and claims the same \
             resources: nothing is done in Azure for this one. Give its Cluster another name, or another resource group {members}"
        )
    }
}

/// [`Claim::refusal`] between two AzureClusters.
impl std::fmt::Display for Claim<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.refusal("AzureCluster", "AzureCluster"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim<'a>(namespace: &'a str, id: Option<&'a str>, made: bool, created: i64) -> Claim<'a> {
        Claim {
            namespace,
            name: "app",
            uid: namespace,
            cluster: "app",
            id,
            made,
            created,
            subscription: "s",
            groups: BTreeSet::from(["app".to_owned()]),
        }
    }

    #[test]
    fn the_cluster_that_comes_first_is_named() {
        let words = claim("green", None, true, 1).to_string();
        assert!(
            words.starts_with("AzureCluster green/app comes first, which belongs to a Cluster"),
            "{words}"
        );
        let words = claim("green", None, true, 1).refusal("AzureCluster", MANAGED_CONTROL_PLANE);
        assert!(words.contains("(spec.resourceGroupName, and spec.virtualNetwork.resourceGroup"), "{words}");
    }

    /// S1: the earlier cluster takes precedence, also after a restart and after a move, where all objects are new and
    /// keep their annotations.
    #[test]
    fn of_two_clusters_that_claim_the_same_one_comes_first() {
        let own = claim("b", None, false, 2);
        let group = |name: &str| BTreeSet::from([name.to_owned()]);
        for (other, expected) in [
            (claim("a", None, false, 1), true),
            (claim("a", None, false, 3), false),
            (claim("a", None, false, 2), true),
            (claim("c", None, false, 2), false),
            (claim("a", Some("a"), true, 3), true),
            (Claim { cluster: "APP", ..claim("a", None, true, 1) }, true),
            (Claim { cluster: "web", ..claim("a", None, true, 1) }, false),
            (Claim { subscription: "t", ..claim("a", None, true, 1) }, false),
            (Claim { groups: group("App"), ..claim("a", None, true, 1) }, true),
            (Claim { groups: group("other"), ..claim("a", None, true, 1) }, false),
        ] {
            assert_eq!(rival(&own, std::slice::from_ref(&other)).is_some(), expected, "{other:?}");
        }
        // Both have created resources: an earlier version has let both begin.
        let own = claim("b", Some("b"), true, 2);
        assert!(rival(&own, &[claim("a", Some("a"), true, 1)]).is_some());
        assert!(rival(&own, &[claim("a", None, false, 1)]).is_none());
    }

    /// A copy bears the ID of the original, and claims the original's resources wherever they are.
    #[test]
    fn a_copy_comes_after_the_original() {
        let original = claim("a", Some("a"), true, 9);
        let copy = Claim { groups: BTreeSet::new(), ..claim("b", Some("a"), true, 1) };
        assert!(rival(&copy, std::slice::from_ref(&original)).is_some());
        assert!(rival(&original, &[copy]).is_none());
    }

    #[test]
    fn just_one_of_any_two_comes_first() {
        let mut all = Vec::new();
        for namespace in ["a", "b", "c"] {
            for made in [false, true] {
                for id in [None, Some("a"), Some("b")] {
                    all.extend([1, 2].map(|created| claim(namespace, id, made, created)));
                }
            }
        }
        for one in &all {
            for other in all.iter().filter(|other| other.namespace != one.namespace) {
                let first = rival(one, std::slice::from_ref(other)).is_none();
                assert_ne!(first, rival(other, std::slice::from_ref(one)).is_none(), "{one:?} {other:?}");
            }
        }
    }
}
