//! Objects of built-in kinds are typed: what is in them has the type that the kind says, and there is nothing else.

use parking_lot::Mutex;
use serde_json::Value;

use crate::admission::Invalid;
use crate::registry::Kind;
use crate::schema::builtin;
use crate::schema::decode::{decode, remove_unknown};
use crate::status::ApiError;
use crate::wire;

/// What is done about members that a kind does not have, and about those that are there twice (`fieldValidation`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Reaction<'a> {
    /// They are dropped.
    #[default]
    Ignore,
    /// They are dropped, and the client hears of it.
    Warn(&'a Mutex<Vec<String>>),
    /// The request is refused.
    Strict,
}

/// The same, with what the reader of the body has found already: it is told together with the rest.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FieldValidation<'a> {
    pub(crate) reaction: Reaction<'a>,
    /// Members that are there twice, in words.
    pub(crate) duplicates: &'a [String],
}

impl FieldValidation<'_> {
    /// Deals with what was found. The error is what is said of it all together.
    pub(crate) fn settle(self, unknown: &[String]) -> Result<(), String> {
        let found = || self.duplicates.iter().chain(unknown);
        match self.reaction {
            _ if found().next().is_none() => Ok(()),
            Reaction::Ignore => Ok(()),
            Reaction::Warn(warnings) => {
                let mut warnings = warnings.lock();
                for text in found() {
                    // A request may be tried several times.
                    if !warnings.contains(text) {
                        warnings.push(text.clone());
                    }
                }
                Ok(())
            }
            Reaction::Strict => {
                let found: Vec<&str> = found().map(String::as_str).collect();
                Err(format!("strict decoding error: {}", found.join(", ")))
            }
        }
    }
}

/// Decodes an object that came as a whole.
///
/// # Errors
/// 400 in the server's words: a value of a wrong type, or unknown members where they are refused.
pub(super) fn body(kind: &Kind, object: &mut Value, validation: FieldValidation<'_>) -> Result<(), ApiError> {
    into_type(kind, object, validation).map_err(|why| cannot_be_handled(kind, &why))
}

/// A body that is no object of the kind.
pub(crate) fn cannot_be_handled(kind: &Kind, why: &str) -> ApiError {
    let (name, version) = (&kind.kind, &kind.version);
    ApiError::bad_request(format!("{name} in version {version:?} cannot be handled as a {name}: {why}"))
}

/// Decodes an object that a patch made; `patch` is what messages show of it.
///
/// # Errors
/// 422 with the same words.
pub(super) fn patched(
    kind: &Kind,
    object: &mut Value,
    patch: impl Fn(&Value) -> String,
    validation: FieldValidation<'_>,
) -> Result<(), ApiError> {
    into_type(kind, object, validation).map_err(|why| {
        let message = format!("Invalid value: {:?}: {why}", patch(object));
        ApiError::invalid_patch(&Invalid { field: "patch".to_owned(), message })
    })
}

/// Decodes an object that a hook has changed. What its kind does not have is dropped.
///
/// # Errors
/// 500: it is not the client who has made a mistake.
pub(crate) fn changed(kind: &Kind, object: &mut Value) -> Result<(), ApiError> {
    into_type(kind, object, FieldValidation::default()).map_err(|why| ApiError::internal(&why))
}

fn into_type(kind: &Kind, object: &mut Value, validation: FieldValidation<'_>) -> Result<(), String> {
    if kind.custom {
        // Their types are checked with all else that their schema asks for, and what it does not know goes then, too.
        return validation.settle(&unknown(&decode(kind.tree(), object).unknown));
    }
    let Some(schema) = builtin::of_kind(&kind.group, &kind.version, &kind.kind) else {
        return validation.settle(&[]);
    };
    wire::tidy(kind, object)?;
    let findings = decode(schema, object);
    if let Some(wrong) = findings.wrong {
        return Err(wrong.to_string());
    }
    validation.settle(&unknown(&findings.unknown))?;
    if !findings.unknown.is_empty() {
        remove_unknown(schema, object);
    }
    Ok(())
}

fn unknown(paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| format!("unknown field {path:?}")).collect()
}

/// A value as Go prints it, which is how messages show strategic merge patches.
pub(super) fn go_text(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{name}:{}", go_text(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(go_text).collect::<Vec<_>>().join(" ")),
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}
