//! What raw resources declared when they were last as declared: a member that is declared no longer is removed, and a
//! Secret that has changed is written again. Azure shows neither.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use azure_types::ResourceId;
use serde_json::{Map, Value, json};

use super::place::{Placed, Standing};
use crate::compare::Withdrawn;
use crate::goal::Goal;

/// The annotation with the declared members.
pub const RAW_MEMBERS: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-raw-members";
/// Members whose absence says that another party decides them.
const DECIDED_ELSEWHERE: [&str; 1] = ["/properties/count"];

/// The declaration of one resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Declaration {
    /// JSON pointers to its members, with the fingerprints of lists. Members of objects count one by one.
    members: BTreeMap<String, String>,
    /// The Secrets that it takes values from, with their versions.
    secrets: String,
}

/// The declarations of an object's resources when these were last as declared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied(BTreeMap<ResourceId, Declaration>);

impl Applied {
    /// Reads the annotation; what is no ID is dropped.
    pub fn of(annotations: &BTreeMap<String, String>) -> Self {
        let listed: Option<Map<String, Value>> =
            annotations.get(RAW_MEMBERS).and_then(|text| serde_json::from_str(text).ok());
        let entry = |(id, entry): (String, Value)| {
            let members = entry["members"].as_object()?.iter();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let members = members.map(|(pointer, print)| (pointer.clone(), text(print))).collect();
            Some((ResourceId::parse(&id).ok()?, Declaration { members, secrets: text(&entry["secrets"]) }))
        };
        Self(listed.into_iter().flatten().filter_map(entry).collect())
    }

    /// The annotation with these declarations.
    pub fn annotation(&self) -> (String, String) {
        let entry = |(id, it): (&ResourceId, &Declaration)| {
            (id.to_string(), json!({ "members": it.members, "secrets": it.secrets }))
        };
        (RAW_MEMBERS.to_owned(), Value::Object(self.0.iter().map(entry).collect()).to_string())
    }

    /// The declarations of these resources. What waits for others keeps its earlier one.
    #[must_use]
    pub fn renewed(&self, placed: &[Placed]) -> Self {
        let waits = placed.iter().any(|it| it.id().is_none());
        let mut all = if waits { self.0.clone() } else { BTreeMap::new() };
        for it in placed {
            if let Standing::Known { id, document, .. } = &it.standing {
                let mut members = BTreeMap::new();
                members_of(&document.value, "", &document.secrets, &mut members);
                all.insert(id.clone(), Declaration { members, secrets: it.secrets.clone() });
            }
        }
        Self(all)
    }

    /// Forgets the declaration of a resource that is being written.
    pub fn forget(&mut self, id: &ResourceId) {
        self.0.remove(id);
    }

    /// Completes goals: members and items that are declared no longer are removed, and changed secrets are written.
    pub fn complete(&self, goals: &mut [Goal], placed: &[Placed]) {
        let now = Self::default().renewed(placed);
        for goal in goals.iter_mut().filter(|goal| goal.wanted) {
            let (Some(before), Some(now)) = (self.0.get(&goal.id), now.0.get(&goal.id)) else { continue };
            goal.withdrawn.extend(withdrawn(&before.members, &now.members));
            // An object that has recorded none was made by another release, or before its first record.
            goal.has_new_secrets = !before.secrets.is_empty() && before.secrets != now.secrets;
        }
    }
}

/// The members of a document without its secrets.
fn members_of(value: &Value, at: &str, secrets: &[String], all: &mut BTreeMap<String, String>) {
    if secrets.iter().any(|secret| secret == at) {
        return;
    }
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (name, value) in members {
                let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                members_of(value, &at, secrets, all);
            }
        }
        Value::Array(items) => _ = all.insert(at.to_owned(), fingerprint(items)),
        _ => _ = all.insert(at.to_owned(), String::new()),
    }
}

/// The fingerprint of a list.
fn fingerprint(items: &[Value]) -> String {
    let text = Value::from(items.to_vec()).to_string();
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref().iter().take(8).fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

fn withdrawn(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<Withdrawn> {
    // An object became a value, or a value an object: the comparison shows that.
    let is_replaced = |pointer: &str| {
        let inside =
            |outer: &str, inner: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
        now.keys().any(|other| inside(pointer, other) || inside(other, pointer))
    };
    let gone = before.iter().filter_map(|(pointer, print)| match now.get(pointer) {
        Some(same) if same == print => None,
        Some(_) => Some(Withdrawn::Items(pointer.clone())),
        None if is_replaced(pointer) || DECIDED_ELSEWHERE.contains(&pointer.as_str()) => None,
        None => Some(Withdrawn::Declared(pointer.clone())),
    });
    gone.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(document: &Value, secrets: &[&str]) -> BTreeMap<String, String> {
        let secrets: Vec<String> = secrets.iter().map(|it| (*it).to_owned()).collect();
        let mut members = BTreeMap::new();
        members_of(document, "", &secrets, &mut members);
        members
    }

    /// A member that is declared no longer goes; a list that is declared otherwise loses its other items.
    #[test]
    fn what_is_declared_no_longer_is_withdrawn() {
        let member = |pointer: &str| Withdrawn::Declared(pointer.to_owned());
        let items = |pointer: &str| Withdrawn::Items(pointer.to_owned());
        for (before, now, expected) in [
            (
                json!({ "tags": { "a": "1", "b": "2" } }),
                json!({ "tags": { "a": "3" } }),
                vec![member("/tags/b")],
            ),
            (json!({ "tags": { "a/b~c": "1" } }), json!({}), vec![member("/tags/a~1b~0c")]),
            (json!({ "a": { "b": 1 } }), json!({ "a": 1 }), vec![]),
            (json!({ "a": 1 }), json!({ "a": { "b": 1 } }), vec![]),
            (json!({ "a": {} }), json!({ "a": { "b": 1 } }), vec![]),
            (json!({ "a": [1, 2] }), json!({ "a": [1, 2] }), vec![]),
            (json!({ "a": [1, 2] }), json!({ "a": [1] }), vec![items("/a")]),
            (json!({ "a": [1, 2] }), json!({}), vec![member("/a")]),
            (json!({ "ab": 1 }), json!({ "a": 1 }), vec![member("/ab")]),
            // The autoscaler decides the number of machines now.
            (json!({ "properties": { "count": 2 } }), json!({ "properties": {} }), vec![]),
        ] {
            assert_eq!(withdrawn(&declared(&before, &[]), &declared(&now, &[])), expected, "{before} {now}");
        }
    }

    /// Secrets are not part of the annotation, not even as fingerprints.
    #[test]
    fn secrets_are_not_recorded() {
        let document =
            json!({ "properties": { "password": "hunter2", "name": "n", "all": { "key": "hunter2" } } });
        let members = declared(&document, &["/properties/password", "/properties/all"]);
        assert_eq!(members.into_keys().collect::<Vec<_>>(), ["/properties/name"]);
    }

    #[test]
    fn declarations_survive_their_annotation() {
        let members = declared(&json!({ "tags": { "a": "1" }, "zones": ["1"] }), &[]);
        let declaration = Declaration { members, secrets: "s@7".to_owned() };
        let applied = Applied([(ResourceId::group("s", "g"), declaration)].into());
        assert_eq!(Applied::of(&BTreeMap::from([applied.annotation()])), applied);
        for text in ["", "[]", r#"{"no id":{}}"#] {
            let annotations = BTreeMap::from([(RAW_MEMBERS.to_owned(), text.to_owned())]);
            assert_eq!(Applied::of(&annotations), Applied::default(), "{text}");
        }
    }
}
