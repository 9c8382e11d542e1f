//! What a resource without tags says of whose it is: the metadata of a record. A cluster records what it is about to make; of two
//! that record the same at the same moment, the id in what is there says which one made it.

use ownership::{Evidence, Ownership, Rival};
use serde_json::Value;

use crate::claimant::Claimant;
use crate::tags::ID;

/// What the metadata of a document says; nothing where it holds no id, or where the cluster's id is not known.
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

    /// S7: what a cluster has recorded proves nothing against the id of another one.
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
