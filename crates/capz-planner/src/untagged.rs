//! The owner of a resource without tags: the metadata of a record. A cluster records what it is about to create; if two
//! clusters record the same at the same moment, the ID in the resource shows which one created it.

use ownership::{Evidence, Ownership, Rival};
use serde_json::Value;

use crate::claimant::Claimant;
use crate::tags::ID;

/// The ownership according to the metadata of a document; `None` if it holds no ID, or if the cluster's ID is unknown.
pub(crate) fn by_metadata(claimant: Claimant<'_>, held: &Value) -> Option<Ownership> {
    let metadata = held.pointer("/properties/metadata")?.as_object()?;
    let (_, id) = metadata.iter().find(|(key, _)| key.eq_ignore_ascii_case(ID))?;
    let id = id.as_str().filter(|id| !id.is_empty())?;
    let evidence = Evidence::Metadata { key: ID.to_owned(), value: id.to_owned() };
    Some(match claimant.id? {
        own if own == id => Ownership::Proven(claimant.proof(evidence)),
        _ => Ownership::Disputed(Rival { owner: "another cluster".to_owned(), evidence }),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// S7: a cluster's record proves nothing against the ID of another cluster.
    #[test]
    fn a_record_says_whose_it_is() {
        let own = Claimant { id: Some("a"), ..Claimant::from("c") };
        let unknown = Claimant::from("c");
        for (metadata, expected) in [
            (json!({ ID: "a" }), "proven"),
            (json!({ ID.to_uppercase(): "a", "creator": "else" }), "proven"),
            (json!({ ID: "b" }), "disputed"),
            (json!({ ID: "" }), "nothing"),
            (json!({ "creator": "a" }), "nothing"),
            (Value::Null, "nothing"),
        ] {
            let held = json!({ "properties": { "metadata": metadata } });
            let found = match by_metadata(own, &held) {
                Some(Ownership::Proven(_)) => "proven",
                Some(Ownership::Disputed(_)) => "disputed",
                Some(_) => "else",
                None => "nothing",
            };
            assert_eq!(found, expected, "{held}");
            assert_eq!(by_metadata(unknown, &held), None, "{held}");
        }
        assert_eq!(by_metadata(own, &json!({})), None);
    }
}
