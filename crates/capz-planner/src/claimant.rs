//! The cluster on whose behalf ownership is judged, and the proofs of its ownership.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use ownership::{Evidence, Owner, Ownership, Proof, Rival};
use serde_json::Value;

use crate::document::id_of;
use crate::operator::KEPT;
use crate::tags::{self, ID, OWNED, SHARED, owner_key};

/// The kind of managed clusters.
pub const MANAGED_CONTROL_PLANE: &str = "AzureManagedControlPlane";
/// The kind of their node pools.
pub const MANAGED_MACHINE_POOL: &str = "AzureManagedMachinePool";
/// The annotation of AzureClusters with the resources that they have recorded: `{"<service>": ["<id>"]}`.
pub const RESOURCES: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-resources";

/// The cluster on whose behalf ownership is judged. The Cluster's name alone is no proof: another cluster, in another
/// namespace or in another management cluster, may have the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimant<'a> {
    /// The kind of the object that is reconciled.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The name of the Cluster that it belongs to.
    pub cluster: &'a str,
    /// The ID of the cluster, as its AzureCluster bears it in an annotation; empty if it has none yet. `None` if it is
    /// unknown, as for a manifest that no controller has seen: then the tag with the name is the only proof.
    pub id: Option<&'a str>,
    /// Whether a resource with the tag of the cluster's name must also bear the cluster's ID. Otherwise a resource
    /// without any ID is the cluster's: the established provider, or an earlier version of this program, created it,
    /// and the cluster has recorded it.
    pub marked_only: bool,
    /// Resources that are foreign, whatever their tags say: the operator that created them was configured not to delete
    /// them.
    pub kept: &'a BTreeSet<ResourceId>,
}

static NOTHING_KEPT: BTreeSet<ResourceId> = BTreeSet::new();

impl<'a> From<&'a str> for Claimant<'a> {
    /// A cluster of which only the name is known.
    fn from(cluster: &'a str) -> Self {
        Self {
            kind: "AzureCluster",
            namespace: "",
            name: cluster,
            cluster,
            id: None,
            marked_only: false,
            kept: &NOTHING_KEPT,
        }
    }
}

impl Claimant<'_> {
    /// The owner that a proof names.
    pub fn owner(&self) -> Owner {
        Owner {
            kind: self.kind,
            namespace: self.namespace.to_owned(),
            name: self.name.to_owned(),
            cluster: self.cluster.to_owned(),
        }
    }

    /// The proof by one piece of evidence.
    pub fn proof(&self, evidence: Evidence) -> Proof {
        Proof::new(self.owner(), evidence)
    }

    /// The evidence that the cluster recorded a resource before creating it.
    pub fn recorded() -> Evidence {
        Evidence::Recorded { place: format!("annotation {RESOURCES}") }
    }

    /// Whether a resource is kept: then it is used as it is.
    pub fn keeps(&self, id: &ResourceId) -> bool {
        self.kept.contains(id)
    }

    /// Like [`Self::keeps`], for the resource that a document describes.
    pub(crate) fn keeps_what(&self, document: &Value) -> bool {
        !self.kept.is_empty() && id_of(&document["id"]).is_some_and(|id| self.keeps(&id))
    }

    /// The ownership of a kept resource: foreign.
    pub(crate) fn is_kept() -> Ownership {
        Ownership::Unproven(format!("the annotation {KEPT} names it"))
    }

    /// The ownership according to the tags of a document.
    pub fn by_tags(&self, document: &Value) -> Ownership {
        if self.keeps_what(document) {
            return Self::is_kept();
        }
        let key = owner_key(self.cluster);
        let marked = |id: &str| Evidence::Tag { key: ID.to_owned(), value: id.to_owned() };
        let name = tag(document, &key);
        if name != Some(OWNED) {
            // No other program writes the ID, so a missing or changed name tag does not end the ownership. The value
            // `shared` does.
            let own = tag(document, ID).filter(|id| !id.is_empty() && Some(*id) == self.id);
            return match own.filter(|_| name != Some(SHARED)) {
                Some(id) => Ownership::Proven(self.proof(marked(id))),
                None => Ownership::Unproven(format!("it lacks the tag {key}={OWNED}")),
            };
        }
        let named = self.proof(Evidence::Tag { key, value: OWNED.to_owned() });
        match tag(document, ID).filter(|id| !id.is_empty()) {
            Some(_) if self.id.is_none() => Ownership::Proven(named),
            Some(id) if Some(id) == self.id => Ownership::Proven(named.and(marked(id))),
            Some(id) => Ownership::Disputed(Rival {
                owner: format!("another cluster with the name {}", self.cluster),
                evidence: marked(id),
            }),
            None if self.marked_only => {
                Ownership::Unproven(format!("it lacks the tag {ID}={}", self.own_id()))
            }
            None if self.id.is_none() => Ownership::Proven(named),
            None => Ownership::Proven(named.and(Self::recorded())),
        }
    }

    /// The other cluster whose ID a document bears although no tag names its owner: that tag may have been removed.
    pub(crate) fn rival_by_id(&self, document: &Value) -> Option<Rival> {
        if tag(document, &owner_key(self.cluster)) == Some(SHARED) {
            return None;
        }
        let other = tag(document, ID).filter(|id| !id.is_empty() && self.id.is_some_and(|own| own != *id))?;
        let evidence = Evidence::Tag { key: ID.to_owned(), value: other.to_owned() };
        Some(Rival { owner: "another cluster".to_owned(), evidence })
    }

    /// The other cluster that the tags of a document name, by its name or by its ID.
    pub(crate) fn rival_beside(&self, document: &Value) -> Option<Rival> {
        let named = tags::owner_in(document, self.cluster);
        let named = named.map(|(cluster, evidence)| Rival { owner: format!("cluster {cluster}"), evidence });
        named.or_else(|| self.rival_by_id(document))
    }

    /// The member that names the resource group of the cluster's resources, and the kind of the object that has it.
    fn names_group(&self) -> (&'static str, &'static str) {
        match self.kind {
            MANAGED_CONTROL_PLANE | MANAGED_MACHINE_POOL => ("spec.resourceGroupName", MANAGED_CONTROL_PLANE),
            _ => ("spec.resourceGroup", "AzureCluster"),
        }
    }

    fn own_id(&self) -> &str {
        self.id.unwrap_or_default()
    }

    /// Whether the tags of a document prove that the resource is this cluster's.
    pub fn owns(&self, document: &Value) -> bool {
        self.by_tags(document).is_proven()
    }

    /// Why a foreign resource with a name of the cluster's is neither taken over nor deleted, and what to do.
    pub fn foreign(&self, noun: &str, name: &str, held: &Value) -> String {
        if let Ownership::Disputed(rival) = self.by_tags(held) {
            return self.disputed(&format!("{noun} {name}"), &rival);
        }
        let key = owner_key(self.cluster);
        format!(
            "a {noun} {name} exists already and is not this cluster's: give it the tag {key}={OWNED}, or delete it"
        )
    }

    /// Why an existing resource is not touched, and what to do. `resource` is its name in messages.
    pub fn disputed(&self, resource: &str, rival: &Rival) -> String {
        // A peering, which has no tags.
        if let Evidence::Refers { resource: other } = &rival.evidence {
            return format!(
                "{resource} leads to another network, {other}, and is left alone: a peering is named after two networks, so no \
                 network is peered with two others of one name. Give the network of this Cluster another name \
                 (spec.networkSpec.vnet.name of its AzureCluster), or delete the peering if it is of no use to anyone"
            );
        }
        let (member, kind) = self.names_group();
        format!(
            "{resource} belongs to {rival}, and is left alone: give this Cluster another name, or another resource group \
             ({member} of its {kind}), or the resource another name where the {kind} names it. If that \
             cluster does not exist any more, give the resource the tag {ID}={}",
            self.own_id()
        )
    }

    /// Why a cluster that has not recorded a resource with its name does not take it over, and what to do.
    pub fn unrecorded(&self, resource: &str) -> String {
        let key = owner_key(self.cluster);
        let (member, kind) = self.names_group();
        format!(
            "{resource} exists already and bears the tag {key}={OWNED}, but this cluster has not made it: it may belong to another \
             cluster with the name {}, in another namespace or another management cluster. Give this Cluster another name, or another \
             resource group ({member} of its {kind}). If it is to be taken over, give the resource the tag {ID}={}",
            self.cluster,
            self.own_id()
        )
    }
}

/// The value of a tag. Keys are compared without regard to case.
pub(crate) fn tag<'d>(document: &'d Value, key: &str) -> Option<&'d str> {
    let tags = document["tags"].as_object()?;
    tags.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).and_then(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// S1: the tag with the name proves a name; with another ID it proves a rival.
    #[test]
    fn a_name_is_no_identity() {
        let own = Claimant { id: Some("a"), ..Claimant::from("c") };
        let strict = Claimant { marked_only: true, ..own };
        let unknown = Claimant::from("c");
        let name = "sigs.k8s.io_cluster-api-provider-azure_cluster_c";
        for (tags, expected) in [
            (json!({}), ["unproven", "unproven", "unproven"]),
            (json!({ name: "shared" }), ["unproven", "unproven", "unproven"]),
            (json!({ "sigs.k8s.io_cluster-api-provider-azure_cluster_d": OWNED }), ["unproven"; 3]),
            (json!({ ID: "a" }), ["proven", "proven", "unproven"]),
            (json!({ ID: "a", name: "changed" }), ["proven", "proven", "unproven"]),
            (json!({ ID: "a", name: "shared" }), ["unproven", "unproven", "unproven"]),
            (json!({ ID: "b" }), ["unproven", "unproven", "unproven"]),
            (json!({ name: OWNED }), ["proven", "unproven", "proven"]),
            (json!({ name.to_uppercase(): OWNED, ID.to_uppercase(): "a" }), ["proven", "proven", "proven"]),
            (json!({ name: OWNED, ID: "b" }), ["disputed", "disputed", "proven"]),
        ] {
            let document = json!({ "tags": tags });
            let found = [own, strict, unknown].map(|claimant| match claimant.by_tags(&document) {
                Ownership::Proven(proof) => {
                    assert!(!proof.evidence().is_empty());
                    "proven"
                }
                Ownership::Disputed(_) => "disputed",
                Ownership::Unproven(_) => "unproven",
                Ownership::Unknown => "unknown",
            });
            assert_eq!(found, expected, "{document}");
        }
        assert_eq!(own.by_tags(&json!({})), Ownership::Unproven(format!("it lacks the tag {name}=owned")));
    }

    /// S3: a resource that the established provider's operator was configured not to delete is foreign, whatever it
    /// bears.
    #[test]
    fn what_is_kept_is_not_ours() {
        const KEPT: &str = "/subscriptions/s/resourceGroups/g";
        let kept = BTreeSet::from([ResourceId::parse(KEPT).unwrap()]);
        let own = Claimant { id: Some("a"), kept: &kept, ..Claimant::from("c") };
        let name = "sigs.k8s.io_cluster-api-provider-azure_cluster_c";
        for (id, is_ours) in [
            (KEPT, false),
            ("/SUBSCRIPTIONS/S/resourceGroups/G", false),
            ("/subscriptions/s/resourceGroups/h", true),
        ] {
            for tags in [json!({ name: OWNED }), json!({ ID: "a" }), json!({ name: OWNED, ID: "a" })] {
                let document = json!({ "id": id, "tags": tags });
                assert_eq!(own.owns(&document), is_ours, "{document}");
                let borne = crate::owner_tags::Borne::Id.ownership(own, &json!({ "id": id, "tags": {} }));
                assert_eq!(borne.is_proven(), is_ours, "{document}");
            }
        }
    }

    #[test]
    fn an_id_alone_names_a_rival() {
        let name = "sigs.k8s.io_cluster-api-provider-azure_cluster_c";
        let own = Claimant { id: Some("a"), ..Claimant::from("c") };
        for (claimant, tags, is_rival) in [
            (own, json!({ ID: "b" }), true),
            (own, json!({ ID: "b", name: "changed" }), true),
            (own, json!({ ID: "b", name: "shared" }), false),
            (own, json!({ ID: "a" }), false),
            (own, json!({ ID: "" }), false),
            (own, json!({}), false),
            (Claimant::from("c"), json!({ ID: "b" }), false),
        ] {
            assert_eq!(claimant.rival_by_id(&json!({ "tags": tags })).is_some(), is_rival, "{tags}");
        }
    }
}
