//! Merge patches in the operator's shape.

use std::fmt;

use serde_json::{Map, Value};

use crate::error::Refusal;
use crate::kind::Kind;
use crate::lookup::{Awaited, Lookup};
use crate::member::{object_of, word_of};
use crate::translation::{Mode, Translation};

/// A JSON merge patch (RFC 7386) of a document.
#[derive(Clone, PartialEq, Default)]
pub struct Patch {
    /// The merge patch.
    pub merge: Value,
    /// JSON pointers to objects that the patch states as a whole: their present members go first. The operator has a
    /// list where the document has an object.
    pub replaced: Vec<String>,
    /// JSON pointers to values that came from Secrets, or may be secret.
    pub secrets: Vec<String>,
    /// What has to be known before it is complete.
    pub awaited: Vec<Awaited>,
    /// A merge patch of `spec.operatorSpec`; null if there is none.
    pub operator_spec: Value,
}

impl fmt::Debug for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The patch may hold secrets.
        f.debug_struct("Patch").field("replaced", &self.replaced).field("awaited", &self.awaited).finish()
    }
}

impl Patch {
    /// Translates a merge patch of an object of this kind.
    ///
    /// # Errors
    ///
    /// A member cannot be read, or would change which resource the object stands for.
    pub fn of(kind: &'static Kind, patch: &Value, lookup: &dyn Lookup) -> Result<Self, Refusal> {
        let members = object_of(patch, "the patch")?;
        for (name, value) in members {
            let same = match name.as_str() {
                "spec" => continue,
                // What the operator's object bears in Kubernetes has no counterpart in the document.
                "metadata" | "status" => continue,
                "kind" => value == kind.kind,
                "apiVersion" => value.as_str().is_some_and(|api| api.split('/').next() == Some(kind.group)),
                _ => false,
            };
            if !same {
                return Err(Refusal::value(name, value, "remove it: a patch changes spec"));
            }
        }
        let mut spec = match members.get("spec") {
            None => Map::new(),
            Some(spec) => object_of(spec, "spec")?.clone(),
        };
        for name in ["azureName", "owner"] {
            if let Some(value) = spec.get(name) {
                let remedy = "remove it: a patch cannot change which resource it is";
                return Err(Refusal::value(&format!("spec.{name}"), value, remedy));
            }
        }
        let operator_spec = spec.remove("operatorSpec").unwrap_or_default();
        if !operator_spec.is_null() && !operator_spec.is_object() {
            return Err(Refusal::value("spec.operatorSpec", word_of(&operator_spec), "write an object"));
        }
        let mut translation = Translation::new(kind, None, lookup, Mode::Patch);
        let merge = translation.specification(&spec)?;
        let Translation { secrets, awaited, replaced, .. } = translation;
        Ok(Self { merge, replaced, secrets, awaited, operator_spec })
    }

    /// Patches a document.
    pub fn apply(&self, document: &mut Value) {
        for pointer in &self.replaced {
            if let Some(replaced) = document.pointer_mut(pointer) {
                *replaced = Value::Null;
            }
        }
        merge(document, &self.merge);
        // A document without properties has no such member.
        if let Some(members) = document.as_object_mut()
            && members.get("properties").and_then(Value::as_object).is_some_and(Map::is_empty)
        {
            members.remove("properties");
        }
    }
}

/// Applies a JSON merge patch.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else { return };
    for (name, value) in patch {
        if value.is_null() {
            members.remove(name);
        } else {
            merge(members.entry(name.as_str()).or_insert(Value::Null), value);
        }
    }
}
