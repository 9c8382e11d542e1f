//! Decodes objects by the types of their kind, and reports unknown members.

use parking_lot::Mutex;
use serde_json::Value;

use crate::object::invalid::Invalid;
use crate::registry::Kind;
use crate::schema::builtin;
use crate::schema::decode::{decode, remove_unknown};
use crate::status::ApiError;
use crate::wire;

/// The handling of unknown and duplicate members (`fieldValidation`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Reaction<'a> {
    /// They are dropped.
    #[default]
    Ignore,
    /// They are dropped, and the client gets a warning.
    Warn(&'a Mutex<Vec<String>>),
    /// The request is refused.
    Strict,
}

/// The same, with the duplicates that the parser of the body found: they are reported together with the rest.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FieldValidation<'a> {
    pub(crate) reaction: Reaction<'a>,
    /// The messages of duplicate members.
    pub(crate) duplicates: &'a [String],
}

impl FieldValidation<'_> {
    /// Handles the findings. The error is the message for all of them.
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

/// Decodes a whole object.
///
/// # Errors
/// 400 with the server's message: a value of a wrong type, or unknown members if they are refused.
pub(crate) fn body(kind: &Kind, object: &mut Value, validation: FieldValidation<'_>) -> Result<(), ApiError> {
    into_type(kind, object, validation).map_err(|why| cannot_be_handled(kind, &why))
}

/// A body that is not an object of the kind.
pub(crate) fn cannot_be_handled(kind: &Kind, why: &str) -> ApiError {
    let (name, version) = (&kind.kind, &kind.version);
    ApiError::bad_request(format!("{name} in version {version:?} cannot be handled as a {name}: {why}"))
}

/// Decodes the result of a patch; `patch` is the text that messages show for it.
///
/// # Errors
/// 422 with the same messages.
pub(crate) fn patched(
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

/// Decodes an object that a hook has changed. Unknown members are dropped.
///
/// # Errors
/// An error with 500, because it is not the client's.
pub(crate) fn decode_mutated(kind: &Kind, object: &mut Value) -> Result<(), ApiError> {
    into_type(kind, object, FieldValidation::default()).map_err(|why| ApiError::internal(&why))
}

fn into_type(kind: &Kind, object: &mut Value, validation: FieldValidation<'_>) -> Result<(), String> {
    if kind.is_custom() {
        // Types of custom objects are validated with the rest of their schema, and their unknown members are dropped
        // then, too.
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
