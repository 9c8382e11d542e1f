//! The errors in the fields of an object.

use std::fmt::Display;

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
    pub(crate) fn new(field: impl Into<String>, message: impl Into<String>) -> Invalid {
        Invalid { field: field.into(), message: message.into() }
    }

    pub(crate) fn required(field: impl Into<String>, why: &str) -> Invalid {
        let message =
            if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Invalid::new(field, message)
    }

    pub(crate) fn value(field: impl Into<String>, value: impl Display, why: &str) -> Invalid {
        Invalid::new(field, format!("Invalid value: {value}: {why}"))
    }

    pub(crate) fn text(field: impl Into<String>, value: &str, why: &str) -> Invalid {
        Invalid::value(field, format!("{value:?}"), why)
    }

    /// Whether a value does not have the type that its schema requires.
    pub(crate) fn is_wrong_type(&self) -> bool {
        self.message.starts_with("Invalid value") && self.message.contains(" in body must be of type ")
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: impl Display) -> Invalid {
        Invalid::new(field, format!("Duplicate value: {value}"))
    }

    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> Invalid {
        Invalid::new(field, format!("Forbidden: {why}"))
    }

    pub(crate) fn unsupported(field: impl Into<String>, value: &str, supported: &[&str]) -> Invalid {
        let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        Invalid::new(
            field,
            format!("Unsupported value: {value:?}: supported values: {}", supported.join(", ")),
        )
    }

    /// Refuses a text that breaks a rule.
    pub(crate) fn check(
        field: impl Into<String>,
        text: &str,
        rule: impl FnOnce(&str) -> Result<(), String>,
    ) -> Result<(), Invalid> {
        rule(text).map_err(|why| Invalid::text(field, text, &why))
    }

    /// Refuses a text that is none of the supported ones.
    pub(crate) fn check_one_of(
        field: impl Into<String>,
        value: &str,
        supported: &[&str],
    ) -> Result<(), Invalid> {
        if supported.contains(&value) { Ok(()) } else { Err(Invalid::unsupported(field, value, supported)) }
    }
}

/// All errors of an object.
#[derive(Debug, Default)]
pub(crate) struct Causes(pub(crate) Vec<Invalid>);

impl Causes {
    pub(crate) fn push(&mut self, invalid: Invalid) {
        self.0.push(invalid);
    }

    /// Adds an error, if there is one.
    pub(crate) fn note(&mut self, result: Result<(), Invalid>) {
        self.0.extend(result.err());
    }

    /// Adds an error, if a text breaks a rule.
    pub(crate) fn check(
        &mut self,
        field: impl Into<String>,
        text: &str,
        rule: impl FnOnce(&str) -> Result<(), String>,
    ) {
        self.note(Invalid::check(field, text, rule));
    }

    /// Adds an error, if a text is none of the supported ones.
    pub(crate) fn check_one_of(&mut self, field: impl Into<String>, value: &str, supported: &[&str]) {
        self.note(Invalid::check_one_of(field, value, supported));
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn refuse(self) -> Result<(), Vec<Invalid>> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
    }
}
