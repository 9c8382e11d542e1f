//! The resources that the operator must not delete, as an annotation remembers them.

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;
use serde_json::json;

use super::object::OperatorObject;

/// The annotation of the owner with the resources that the operator must not delete, and their policies:
/// `{"<id>": "skip"}`. Such resources are used unchanged, and neither written nor deleted.
pub const KEPT: &str = "sigs.k8s.io/cluster-api-provider-azure-kept-resources";

/// The kept resources in the annotations of an owner.
pub fn kept_of(annotations: &BTreeMap<String, String>) -> BTreeSet<ResourceId> {
    kept_with_policies(annotations).into_keys().collect()
}

/// The same, with the policies.
pub fn kept_with_policies(annotations: &BTreeMap<String, String>) -> BTreeMap<ResourceId, String> {
    let listed = annotations.get(KEPT).and_then(|text| serde_json::from_str(text).ok());
    let listed: BTreeMap<String, String> = listed.unwrap_or_default();
    listed.into_iter().filter_map(|(id, policy)| Some((ResourceId::parse(&id).ok()?, policy))).collect()
}

/// The value of the annotation [`KEPT`] with the kept resources of these objects added; `None` if they add no resource.
pub fn keeping(annotations: &BTreeMap<String, String>, objects: &[OperatorObject]) -> Option<String> {
    let mut kept = kept_with_policies(annotations);
    let before = kept.len();
    for (id, policy) in objects.iter().filter_map(OperatorObject::kept) {
        kept.entry(id.clone()).or_insert_with(|| policy.to_owned());
    }
    let listed: BTreeMap<&str, &String> = kept.iter().map(|(id, policy)| (id.as_str(), policy)).collect();
    (kept.len() > before).then(|| json!(listed).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::object::POLICY;
    use crate::operator::object::tests::{ID, object};

    #[test]
    fn what_is_kept_stays_so() {
        let before = format!(r#"{{"{}x":"skip","no id":"skip"}}"#, ID);
        let annotations = BTreeMap::from([(KEPT.to_owned(), before)]);
        let found = [object(json!({ POLICY: "skip" }), &[], false, "Succeeded")];
        let text = keeping(&annotations, &found).unwrap();
        assert_eq!(text, format!(r#"{{"{ID}":"skip","{ID}x":"skip"}}"#));
        let annotations = BTreeMap::from([(KEPT.to_owned(), text)]);
        assert_eq!(kept_of(&annotations).len(), 2);
        assert_eq!(keeping(&annotations, &found), None);
        assert_eq!(keeping(&BTreeMap::new(), &[]), None);
    }
}
