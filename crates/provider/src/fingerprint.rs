//! Equal writes have equal fingerprints, whatever Azure changes by itself meanwhile.

use std::hash::{DefaultHasher, Hash, Hasher};

use planner::Step;
use serde_json::Value;

/// Members that differ from write to write although the same is wanted.
const VOLATILE: &[&str] = &["etag", "provisioningState", "resourceGuid"];

/// The fingerprint of some steps.
pub(crate) fn of<'a>(steps: impl IntoIterator<Item = &'a Step>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for step in steps {
        step.target.hash(&mut hasher);
        (step.action as u8).hash(&mut hasher);
        step.changes.hash(&mut hasher);
        // A document that cannot be serialised cannot be written either.
        let document = step.document.as_ref().and_then(|document| serde_json::to_value(document).ok());
        if let Some(document) = document {
            hash(&document, &mut hasher);
        }
    }
    hasher.finish()
}

fn hash(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if !VOLATILE.contains(&name.as_str()) {
                    name.hash(hasher);
                    hash(member, hasher);
                }
            }
        }
        Value::Array(items) => {
            items.len().hash(hasher);
            items.iter().for_each(|item| hash(item, hasher));
        }
        other => other.to_string().hash(hasher),
    }
}
