//! Clusters of one name that would have the same resources: names of resources are made of the cluster's name, and the tag that
//! proves a resource to be a cluster's holds the name. Of two such clusters in one management cluster one comes first, and the
//! other one is refused before it writes anything.

use std::cmp::Reverse;
use std::collections::BTreeSet;

/// What an AzureCluster claims.
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
    /// The id that it bears, if it has begun.
    pub id: Option<&'a str>,
    /// Whether it has recorded resources in Azure, or the established provider has worked on it.
    pub made: bool,
    /// When it was created: seconds since 1970.
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
        // Azure's tags have no case.
        same(self.cluster, other.cluster)
            && (is_copy
                || (same(self.subscription, other.subscription)
                    && self.groups.iter().any(|one| other.groups.iter().any(|it| same(one, it)))))
    }

    /// The least comes first: what has made something, what got its id from its own UID, what is older.
    fn rank(&self) -> impl Ord + use<'_> {
        let is_original = self.id == Some(self.uid);
        (Reverse(self.made), Reverse(self.made && is_original), self.created, self.uid)
    }
}

/// The cluster that comes before this one, among others of the management cluster; `None` if none does.
pub fn rival<'c, 'a>(own: &Claim<'a>, others: &'c [Claim<'a>]) -> Option<&'c Claim<'a>> {
    others
        .iter()
        .filter(|other| !other.is_of_same_object(own) && other.is_against(own) && other.rank() < own.rank())
        .min_by(|one, other| one.rank().cmp(&other.rank()))
}

/// Why a cluster is refused that another one comes before, and what to do.
impl std::fmt::Display for Claim<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { namespace, name, cluster, .. } = self;
        write!(
            f,
            "AzureCluster {namespace}/{name} comes first, which belongs to a Cluster with the same name, {cluster}, and claims the \
             same resources: nothing is done in Azure for this one. Give its Cluster another name, or another resource group \
             (spec.resourceGroup, and spec.networkSpec.vnet.resourceGroup if that is set)"
        )
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

    /// S1: whichever came first, also after a restart and after a move, where all objects are new and bear what they bore.
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
        // Both are made: an earlier version has let both begin.
        let own = claim("b", Some("b"), true, 2);
        assert!(rival(&own, &[claim("a", Some("a"), true, 1)]).is_some());
        assert!(rival(&own, &[claim("a", None, false, 1)]).is_none());
    }

    /// A copy bears the id of the original, and claims what that has, wherever it is.
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
