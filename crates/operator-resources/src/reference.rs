//! References to other resources: by their ID in Azure, or by the object that stands for them.

use std::fmt;

use serde_json::{Map, Value};

use crate::error::Refusal;
use crate::member::{text_of, word_of};

/// An object of the operator's kinds in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The name in Kubernetes.
    pub name: String,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of {}", self.kind, self.name, self.group)
    }
}

/// A reference to a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// By its ID in Azure.
    Id(String),
    /// By an object.
    Object(ObjectName),
    /// By the name of a built-in role.
    Role(String),
}

/// What a reference has to look like.
const FORM: &str = "write {armId: <ID in Azure>}, or {group, kind, name} of an object of the same namespace";

impl Reference {
    /// Reads `{armId}` or `{group, kind, name}`; `path` is where it stands.
    pub(crate) fn of(value: &Value, path: &str) -> Result<Self, Refusal> {
        let refused = || Refusal::value(path, value, FORM);
        let members = value.as_object().ok_or_else(|| Refusal::value(path, word_of(value), FORM))?;
        let given: Map<String, Value> = members
            .iter()
            .filter(|(_, value)| !is_empty(value))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let text =
            |name: &str| given.get(name).map(|value| text_of(value, &format!("{path}.{name}"))).transpose();
        let (id, role) = (text("armId")?, text("wellKnownName")?);
        let (group, kind, name) = (text("group")?, text("kind")?, text("name")?);
        match (id, role, group, kind, name, given.len()) {
            (Some(id), None, None, None, None, 1) => {
                if !is_id(&id) {
                    let remedy = "write an ID that begins with /subscriptions/ or /providers/";
                    return Err(Refusal::value(&format!("{path}.armId"), id, remedy));
                }
                Ok(Self::Id(id))
            }
            (None, Some(role), None, None, None, 1) => Ok(Self::Role(role)),
            (None, None, Some(group), Some(kind), Some(name), 3) => {
                Ok(Self::Object(ObjectName { group, kind, name }))
            }
            _ => Err(refused()),
        }
    }
}

/// Whether a member counts as absent.
fn is_empty(value: &Value) -> bool {
    value.is_null() || value == ""
}

/// Whether a text can be an ID in Azure.
fn is_id(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let absolute = lower.starts_with("/subscriptions/") || lower.starts_with("/providers/");
    absolute && !text.ends_with('/') && !text.contains("//")
}
