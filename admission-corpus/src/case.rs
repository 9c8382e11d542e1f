//! A question to an admission.

use serde_json::Value;

/// A question: may this object be created, or may it be changed to that?
#[derive(Debug, Clone)]
pub struct Case {
    /// The kind of both objects.
    pub kind: String,
    /// The unique name in tables.
    pub name: String,
    /// The existing object, if it is changed.
    pub old: Option<Value>,
    /// The object that is sent.
    pub new: Value,
    /// Whether all feature gates are open.
    pub gates: bool,
}

impl Case {
    pub(crate) fn made(kind: &str, words: &str, new: Value) -> Self {
        Self { kind: kind.to_owned(), name: format!("{kind} {words}"), old: None, new, gates: false }
    }

    /// The same with all feature gates open.
    pub(crate) fn gated(&self) -> Self {
        Self { name: format!("{} with all gates", self.name), gates: true, ..self.clone() }
    }

    pub(crate) fn changed(kind: &str, words: &str, old: Value, new: Value) -> Self {
        Self { kind: kind.to_owned(), name: format!("{kind} {words}"), old: Some(old), new, gates: false }
    }
}
