//! What others have put into Azure, and whether it is unchanged.

use azure_simulator::Azure;
use azure_types::ResourceId;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::finding::Finding;

/// Members that Azure derives from other resources or changes with every write.
const DERIVED: [&str; 6] = [
    "etag",
    "provisioningState",
    "backendIPConfigurations",
    "ipConfigurations",
    "networkInterfaces",
    "subnets",
];

/// What others have put into Azure: for each resource, the members that were added.
#[derive(Debug, Default)]
pub(crate) struct ForeignParts(Mutex<Vec<(ResourceId, Value)>>);

impl ForeignParts {
    /// Records what a change has added. If it changed earlier foreign parts, the new values count.
    pub(crate) fn remember(&self, id: &ResourceId, before: &Value, after: &Value) {
        let mut parts = self.0.lock();
        parts.retain(|(theirs, part)| theirs != id || differences(theirs, part, after).is_empty());
        if let Some(part) = difference(before, after) {
            parts.push((id.clone(), part));
        }
    }

    /// The foreign parts that have changed.
    pub(crate) fn check(&self, azure: &Azure) -> Vec<Finding> {
        let parts = self.0.lock();
        let findings = parts.iter().flat_map(|(id, part)| {
            let now = azure.document(id).unwrap_or_default();
            differences(id, part, &now)
        });
        findings.collect()
    }
}

/// What `after` has and `before` does not: members of objects one by one, named items as a whole.
fn difference(before: &Value, after: &Value) -> Option<Value> {
    match (before, after) {
        (_, Value::Object(after)) => {
            let before = before.as_object();
            let members = after.iter().filter(|(name, _)| !DERIVED.contains(&name.as_str()));
            let new: Map<String, Value> = members
                .filter_map(|(name, value)| {
                    let old = before.and_then(|before| before.get(name)).unwrap_or(&Value::Null);
                    Some((name.clone(), difference(old, value)?))
                })
                .collect();
            (!new.is_empty()).then_some(Value::Object(new))
        }
        (_, Value::Array(after)) if after.iter().all(is_named) => {
            let old = before.as_array().map_or(&[][..], Vec::as_slice);
            let is_new = |item: &&Value| !old.iter().any(|old| difference(old, item).is_none());
            let new: Vec<Value> = after.iter().filter(is_new).cloned().collect();
            (!new.is_empty()).then_some(Value::Array(new))
        }
        (before, after) => (before != after).then(|| after.clone()),
    }
}

fn differences(id: &ResourceId, part: &Value, now: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    compare(id, "", part, now, false, &mut findings);
    findings
}

/// Compares a foreign part with the current value. `whole` says that nothing may have been added.
fn compare(id: &ResourceId, at: &str, was: &Value, is: &Value, whole: bool, findings: &mut Vec<Finding>) {
    let mut changed = |member: String, was: &Value, is: &Value| {
        let (was, is) = (was.clone(), is.clone());
        findings.push(Finding::ForeignChanged { id: id.clone(), member, was, is });
    };
    match (was, is) {
        (Value::Object(was), Value::Object(is)) => {
            for (name, value) in is {
                let derived = DERIVED.contains(&name.as_str()) || is_reference(value);
                if whole && !was.contains_key(name) && !derived {
                    changed(format!("{at}/{name}"), &Value::Null, value);
                }
            }
            for (name, value) in was.iter().filter(|(name, _)| !DERIVED.contains(&name.as_str())) {
                let now = is.get(name).unwrap_or(&Value::Null);
                compare(id, &format!("{at}/{name}"), value, now, whole, findings);
            }
        }
        (Value::Array(was), Value::Array(is)) if was.iter().all(is_named) => {
            for item in was {
                let name = item["name"].as_str().unwrap_or_default();
                let now = is
                    .iter()
                    .find(|now| now["name"].as_str().is_some_and(|now| now.eq_ignore_ascii_case(name)));
                compare(id, &format!("{at}/{name}"), item, now.unwrap_or(&Value::Null), true, findings);
            }
        }
        // References may be added, in any order: Azure records them at their other end.
        (Value::Array(was), Value::Array(is)) if was.iter().all(is_reference) => {
            for item in was.iter().filter(|item| !is.contains(item)) {
                changed(at.to_owned(), item, &json!(is));
            }
        }
        _ if was == is => {}
        _ => changed(at.to_owned(), was, is),
    }
}

fn is_named(item: &Value) -> bool {
    item.get("name").is_some_and(Value::is_string)
}

/// Whether this is `{"id": …}`, or a list of such.
fn is_reference(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.len() == 1 && members.contains_key("id"),
        Value::Array(items) => !items.is_empty() && items.iter().all(is_reference),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> ResourceId {
        ResourceId::group("subscription", "group").resource("Microsoft.Network", "loadBalancers", "shared")
    }

    fn found(before: &Value, put: &Value, now: &Value) -> Vec<String> {
        let part = difference(before, put).unwrap();
        let members = differences(&id(), &part, now).into_iter().map(|finding| match finding {
            Finding::ForeignChanged { member, .. } => member,
            other => panic!("{other}"),
        });
        members.collect()
    }

    fn rule(name: &str, port: u16) -> Value {
        json!({"name": name, "etag": "1", "properties": {"port": port}})
    }

    #[test]
    fn only_what_others_have_put_there_is_theirs() {
        let before = json!({"tags": {"ours": "1"}, "properties": {"rules": [rule("ours", 1)]}});
        let put = json!({"tags": {"ours": "1", "theirs": "2"},
            "properties": {"rules": [rule("ours", 1), rule("theirs", 2)]}});
        let mut now = json!({"tags": {"theirs": "2"}, "properties": {"rules": [rule("theirs", 2)]}});
        assert_eq!(found(&before, &put, &now), Vec::<String>::new());
        now["tags"]["theirs"] = json!("3");
        now["properties"]["rules"][0]["properties"]["port"] = json!(3);
        assert_eq!(found(&before, &put, &now), ["/properties/rules/theirs/properties/port", "/tags/theirs"]);
        assert_eq!(found(&before, &put, &Value::Null), [""]);
    }

    #[test]
    fn nothing_may_be_added_to_named_things_but_what_azure_derives() {
        let put = json!({"properties": {"rules": [rule("theirs", 2)]}});
        let mut now = put.clone();
        now["properties"]["rules"][0]["etag"] = json!("2");
        now["properties"]["rules"][0]["properties"]["users"] = json!([{"id": "/somebody"}]);
        assert_eq!(found(&Value::Null, &put, &now), Vec::<String>::new());
        now["properties"]["rules"][0]["properties"]["timeout"] = json!(4);
        assert_eq!(found(&Value::Null, &put, &now), ["/properties/rules/theirs/properties/timeout"]);
    }
}
