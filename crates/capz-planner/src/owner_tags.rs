//! The tags that proved ownership when a resource was last as desired. An annotation records them: removing all tags
//! from a resource does not end the ownership.

use std::collections::BTreeMap;

use ownership::{Evidence, Ownership};
use serde_json::Value;

use crate::claimant::{Claimant, tag};
use crate::tags::{ID, SHARED, owner_key};

/// The annotation. On an AzureCluster it has a word for each resource, `{"<id>": "<word>"}`; on a machine or a pool it
/// is the word for all its resources.
pub const OWNER_TAGS: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-owner-tags";

/// The owner tags of a resource when it was last as desired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Borne {
    /// It was not proven to be the cluster's, or that is unknown.
    #[default]
    Nothing,
    /// The tag with the cluster's name. The established provider, which writes no IDs, created it.
    Name,
    /// The tag with the cluster's ID as well.
    Id,
}

impl Borne {
    /// The owner tags of this document.
    pub fn of(claimant: Claimant<'_>, held: &Value) -> Self {
        match tag(held, ID).filter(|id| !id.is_empty()) {
            _ if !claimant.owns(held) => Self::Nothing,
            Some(id) if Some(id) == claimant.id => Self::Id,
            _ => Self::Name,
        }
    }

    /// The owner tags in the annotations of a machine or a pool.
    pub(crate) fn recorded(annotations: &BTreeMap<String, String>) -> Self {
        annotations.get(OWNER_TAGS).map_or(Self::Nothing, |word| Self::read(word))
    }

    /// Parses the word of an annotation.
    pub fn read(word: &str) -> Self {
        match word {
            "id" => Self::Id,
            "name" => Self::Name,
            _ => Self::Nothing,
        }
    }

    /// The word for the annotation; `None` if there is nothing to record.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Name => Some("name"),
            Self::Id => Some("id"),
        }
    }

    /// The ownership according to the tags, and to those that a resource had before they were removed. Another
    /// cluster's ID on it is a claim of another writer, and the value `shared` ends the ownership.
    pub(crate) fn ownership(self, claimant: Claimant<'_>, held: &Value) -> Ownership {
        let by_tags = claimant.by_tags(held);
        if self == Self::Nothing
            || claimant.marked_only
            || claimant.keeps_what(held)
            || !matches!(by_tags, Ownership::Unproven(_))
        {
            return by_tags;
        }
        if tag(held, &owner_key(claimant.cluster)) == Some(SHARED) {
            return by_tags;
        }
        let place = format!("annotation {OWNER_TAGS}");
        let recorded = || Ownership::Proven(claimant.proof(Evidence::Recorded { place }));
        claimant.rival_by_id(held).map_or_else(recorded, Ownership::Disputed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Removed tags are written again where the cluster has recorded them and no other ID is there.
    #[test]
    fn tags_that_were_taken_away_give_nothing_away() {
        const NAME: &str = "sigs.k8s.io_cluster-api-provider-azure_cluster_c";
        let own = Claimant { id: Some("a"), ..Claimant::from("c") };
        let second = Claimant { marked_only: true, ..own };
        for (borne, claimant, tags, expected) in [
            (Borne::Nothing, own, json!({}), "unproven"),
            (Borne::Nothing, own, json!({ ID: "a" }), "proven"),
            (Borne::Name, own, json!({}), "proven"),
            (Borne::Id, own, json!({}), "proven"),
            (Borne::Id, own, json!({ NAME: "changed" }), "proven"),
            (Borne::Id, own, json!({ NAME: "shared", ID: "a" }), "unproven"),
            (Borne::Id, own, json!({ ID: "b" }), "disputed"),
            (Borne::Id, own, json!({ NAME: "owned", ID: "b" }), "disputed"),
            (Borne::Id, second, json!({}), "unproven"),
            (Borne::Id, second, json!({ ID: "a" }), "proven"),
        ] {
            let held = json!({ "tags": tags });
            let found = match borne.ownership(claimant, &held) {
                Ownership::Proven(_) => "proven",
                Ownership::Disputed(_) => "disputed",
                Ownership::Unproven(_) => "unproven",
                Ownership::Unknown => "unknown",
            };
            assert_eq!(found, expected, "{borne:?} {held}");
        }
        let marked = json!({ "tags": { NAME: "owned", ID: "a" } });
        assert_eq!(Borne::of(own, &marked), Borne::Id);
        assert_eq!(Borne::of(own, &json!({ "tags": { NAME: "owned" } })), Borne::Name);
        assert_eq!(Borne::of(own, &json!({ "tags": {} })), Borne::Nothing);
        for borne in [Borne::Name, Borne::Id] {
            assert_eq!(Borne::read(borne.word().unwrap()), borne);
        }
    }
}
