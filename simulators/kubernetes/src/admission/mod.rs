//! The API server's processing of an object between the request and the store: defaults, validation and the allocation
//! of cluster addresses and node ports.
//!
//! Messages are kube-apiserver's, so that users find them when they search. Facts are from the Kubernetes API reference
//! and from a kube-apiserver tested side by side.

mod allocators;
pub(crate) mod custom;
mod defaults;
mod definition;
pub(crate) mod expression;
mod immutable;
mod metadata;
mod node;
mod pod;
mod prepare;
mod service;
mod validation;

pub use allocators::Allocators;

use serde_json::Value;

use crate::registry::Kind;
use crate::wire;

/// Group and kind of CustomResourceDefinitions.
const DEFINITION: (&str, &str) = ("apiextensions.k8s.io", "CustomResourceDefinition");

/// A field that is invalid; the object is refused with 422 and reason `Invalid`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Invalid {
    /// Path of the refused field: `spec.ports[0].port`.
    pub field: String,
    /// The error, beginning with its class: `Invalid value: 0: must be between 1 and 65535, inclusive`.
    pub message: String,
}

impl Invalid {
    fn new(field: impl Into<String>, message: impl Into<String>) -> Invalid {
        Invalid { field: field.into(), message: message.into() }
    }

    fn required(field: impl Into<String>, why: &str) -> Invalid {
        let message =
            if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Invalid::new(field, message)
    }

    fn value(field: impl Into<String>, value: &str, why: &str) -> Invalid {
        Invalid::new(field, format!("Invalid value: {value}: {why}"))
    }

    fn text(field: impl Into<String>, value: &str, why: &str) -> Invalid {
        Invalid::value(field, &format!("{value:?}"), why)
    }

    /// Whether a value does not have the type that its schema requires.
    pub(crate) fn is_wrong_type(&self) -> bool {
        self.message.starts_with("Invalid value") && self.message.contains(" in body must be of type ")
    }

    fn duplicate(field: impl Into<String>, value: &str) -> Invalid {
        Invalid::new(field, format!("Duplicate value: {value}"))
    }

    fn forbidden(field: impl Into<String>, why: &str) -> Invalid {
        Invalid::new(field, format!("Forbidden: {why}"))
    }

    fn unsupported(field: impl Into<String>, value: &str, supported: &[&str]) -> Invalid {
        let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        Invalid::new(
            field,
            format!("Unsupported value: {value:?}: supported values: {}", supported.join(", ")),
        )
    }
}

/// All errors of an object.
#[derive(Debug, Default)]
struct Causes(Vec<Invalid>);

impl Causes {
    fn push(&mut self, invalid: Invalid) {
        self.0.push(invalid);
    }

    /// Adds an error, if there is one.
    fn note(&mut self, result: Result<(), Invalid>) {
        self.0.extend(result.err());
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    fn refuse(self) -> Result<(), Vec<Invalid>> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
    }
}

/// The errors in labels and annotations that a conversion webhook returned, as kube-apiserver words them.
pub(crate) fn metadata_causes(object: &Value) -> Vec<String> {
    let mut causes = Causes::default();
    metadata::labels(object, "metadata.labels", &mut causes);
    metadata::annotations(object, "metadata.annotation", &mut causes);
    causes.0.iter().map(ToString::to_string).collect()
}

/// Normalizes an object as a server does when it decodes it, before it compares members: equivalent notations become
/// equal, and missing members get their defaults.
pub fn convert(kind: &Kind, object: &mut Value) {
    match kind.builtin() {
        Some(("", "Node")) => node::join_ranges(object),
        Some(("", "Service")) => service::default_as_read(object),
        Some(DEFINITION) => definition::default(object),
        None => custom::settle(kind.tree(), object),
        _ => {}
    }
    defaults::apply(kind, object);
    prepare::both(kind, object);
}

/// Defaults, validates and completes an object before it is created.
///
/// Allocations stay: a caller that then cannot store the object releases them with [`on_delete`].
///
/// # Errors
/// All invalid fields; nothing is allocated then.
pub fn on_create(kind: &Kind, object: &mut Value, allocators: &mut Allocators) -> Result<(), Vec<Invalid>> {
    let mut causes = Causes::default();
    metadata::tidy(kind, object);
    if kind.custom {
        // Hooks may have changed it.
        custom::settle(kind.tree(), object);
    }
    defaults::apply(kind, object);
    prepare::on_create(kind, object);
    metadata::validate(kind, object, &mut causes);
    match kind.builtin() {
        Some(("", "Service")) => service::on_create(object, allocators, &mut causes),
        Some(("", "Node")) => {
            node::default_on_create(object);
            causes.note(node::validate(object));
        }
        Some(DEFINITION) => {
            definition::default(object);
            definition::validate(None, object, &mut causes);
        }
        None => custom::validate(kind, None, object, &mut causes),
        _ => validation::validate(kind, object, &mut causes),
    }
    causes.refuse()
}

/// Defaults, validates and completes `object`, which will replace `old`.
///
/// # Errors
/// All invalid fields; allocations stay unchanged then.
pub fn on_update(
    kind: &Kind,
    old: &Value,
    object: &mut Value,
    allocators: &mut Allocators,
) -> Result<(), Vec<Invalid>> {
    let mut causes = Causes::default();
    // An object that hooks have seen is complete already.
    if let Err(why) = wire::tidy(kind, object) {
        causes.push(Invalid::new("", why));
    }
    metadata::tidy(kind, object);
    if kind.custom {
        // Hooks may have changed it.
        custom::settle(kind.tree(), object);
    }
    defaults::apply(kind, object);
    prepare::on_update(kind, old, object);
    metadata::validate(kind, object, &mut causes);
    match kind.builtin() {
        Some(("", "Service")) => service::on_update(old, object, allocators, &mut causes),
        Some(("", "Node")) => {
            causes.note(node::validate(object));
            causes.note(node::validate_update(old, object));
        }
        Some(DEFINITION) => {
            definition::default(object);
            definition::validate(Some(old), object, &mut causes);
        }
        None => custom::validate(kind, Some(old), object, &mut causes),
        _ => {
            validation::validate(kind, object, &mut causes);
            if kind.is("batch", "Job") {
                // The server's update validation repeats the validation of the whole object, which has already run
                // here.
                validation::validate(kind, object, &mut causes);
                validation::validate_job_status(old, object, &mut causes);
            }
            immutable::validate(kind, &complete(kind, old), &complete(kind, object), &mut causes);
        }
    }
    causes.refuse()
}

/// An object with all empty members that stored objects have: an object that is not stored yet lacks them.
fn complete(kind: &Kind, object: &Value) -> Value {
    let mut object = object.clone();
    wire::complete(kind, &mut object);
    object
}

/// Releases the allocations of a deleted object.
pub fn on_delete(kind: &Kind, object: &Value, allocators: &mut Allocators) {
    if kind.is("", "Service") {
        service::on_delete(object, allocators);
    }
}

fn text_at<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list_at<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests;
