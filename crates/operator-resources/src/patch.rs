//! Merge patches in the operator's shape.

use std::fmt;

use serde_json::{Map, Value};

use crate::error::Refusal;
use crate::lookup::{Awaited, Lookup};
use crate::member::{object_of, text_of, word_of};
use crate::resource::Policy;
use crate::table::{Kind, api_version};
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
    /// Members of the patch that Azure is not known to have, as in [`Document::unknown`](crate::Document::unknown).
    pub unknown: Vec<String>,
    /// What it makes of the resource's policy; absent if it does not touch it.
    pub policy: Option<Policy>,
    /// Azure's API version for the operator's version that it asks for, if it does.
    pub api_version: Option<String>,
    /// A merge patch of `spec.operatorSpec`; null if the patch has no such member.
    pub operator_spec: Value,
}

impl fmt::Debug for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The patch may hold secrets.
        let Self { replaced, awaited, unknown, policy, .. } = self;
        f.debug_struct("Patch")
            .field("replaced", replaced)
            .field("awaited", awaited)
            .field("unknown", unknown)
            .field("policy", policy)
            .finish_non_exhaustive()
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
        let mut translated = Self::default();
        for (name, value) in members {
            match name.as_str() {
                // The rest of the metadata is the operator's object's, and has no counterpart in the document.
                "metadata" => translated.policy = Policy::patched(value)?,
                "spec" | "status" => {}
                "kind" if value == kind.kind => {}
                "apiVersion" => translated.api_version = Some(version_of(kind, value)?),
                _ => return Err(Refusal::value(name, word_of(value), "remove it: a patch changes spec")),
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
        let Translation { secrets, mut awaited, replaced, unknown, .. } = translation;
        awaited.sort();
        awaited.dedup();
        Ok(Self { merge, replaced, secrets, awaited, unknown, operator_spec, ..translated })
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

/// Azure's API version for an `apiVersion` of this kind.
fn version_of(kind: &Kind, value: &Value) -> Result<String, Refusal> {
    let text = text_of(value, "apiVersion")?;
    let version = text.strip_prefix(kind.group).and_then(|rest| api_version(rest.strip_prefix('/')?));
    version.ok_or_else(|| {
        Refusal::value(
            "apiVersion",
            &text,
            format!("write {}/<a version with a date>, or remove it", kind.group),
        )
    })
}

/// Applies a JSON merge patch.
fn merge(target: &mut Value, patch: &Value) {
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
