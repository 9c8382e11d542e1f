//! Validation errors: the path, the reason, and what to do about it.

use std::cell::RefCell;
use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

/// The reason of an error; the names are those of a Status' causes.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// The value is missing.
    Required,
    /// The value is invalid.
    Invalid(Value),
    /// The value is a duplicate.
    Duplicate(Value),
    /// The value must not be set.
    Forbidden,
    /// The value is not one of the supported words.
    NotSupported(Value),
}

/// One validation error.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// The path, as Kubernetes writes it: `spec.networkSpec.subnets[0].name`.
    pub path: String,
    /// The reason.
    pub reason: Reason,
    /// Why, and what to do.
    pub detail: String,
}

impl FieldError {
    /// The reason in the spelling of a Status' cause.
    pub fn cause(&self) -> &'static str {
        match self.reason {
            Reason::Required => "FieldValueRequired",
            Reason::Invalid(_) => "FieldValueInvalid",
            Reason::Duplicate(_) => "FieldValueDuplicate",
            Reason::Forbidden => "FieldValueForbidden",
            Reason::NotSupported(_) => "FieldValueNotSupported",
        }
    }

    /// The error without its path, as in a Status' cause.
    pub fn body(&self) -> String {
        let said = match &self.reason {
            Reason::Required => "Required value".to_owned(),
            Reason::Invalid(value) => format!("Invalid value: {value}"),
            Reason::Duplicate(value) => format!("Duplicate value: {value}"),
            Reason::Forbidden => "Forbidden".to_owned(),
            Reason::NotSupported(value) => format!("Unsupported value: {value}"),
        };
        if self.detail.is_empty() { said } else { format!("{said}: {}", self.detail) }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

/// All validation errors of an object, in the order in which they were found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldErrors(pub Vec<FieldError>);

impl FieldErrors {
    /// The errors that a check finds in an object.
    pub(crate) fn of(check: impl FnOnce(&Field<'_>)) -> Self {
        let errors = RefCell::default();
        check(&Field { path: String::new(), errors: &errors });
        errors.into_inner()
    }

    /// Whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These errors without those that an object's previous version has, too: a rule that is newer than an object stops
    /// no other change of it.
    pub(crate) fn without(mut self, known: &Self) -> Self {
        self.0.retain(|error| !known.0.contains(error));
        self
    }

    /// All errors, as in a Status' message.
    pub fn message(&self) -> String {
        let errors: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        match errors.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        }
    }
}

/// A member of an object that is being checked, and the list of errors to which its own are added.
#[derive(Clone)]
pub(crate) struct Field<'e> {
    path: String,
    errors: &'e RefCell<FieldErrors>,
}

impl Field<'_> {
    /// A member below this one; a name with dots stands for several levels.
    pub(crate) fn child(&self, member: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self { path: format!("{}{dot}{member}", self.path), errors: self.errors }
    }

    /// An entry of a list.
    pub(crate) fn index(&self, index: usize) -> Self {
        Self { path: format!("{}[{index}]", self.path), errors: self.errors }
    }

    /// The value is missing.
    pub(crate) fn required(&self, detail: impl fmt::Display) {
        self.push(Reason::Required, detail);
    }

    /// The value is missing if this holds.
    pub(crate) fn required_if(&self, is_missing: bool, detail: impl fmt::Display) {
        if is_missing {
            self.required(detail);
        }
    }

    /// The value is invalid.
    pub(crate) fn invalid(&self, value: impl Serialize, detail: impl fmt::Display) {
        self.push(Reason::Invalid(json!(value)), detail);
    }

    /// The value is invalid if this holds.
    pub(crate) fn invalid_if(&self, is_wrong: bool, value: impl Serialize, detail: impl fmt::Display) {
        if is_wrong {
            self.invalid(value, detail);
        }
    }

    /// The value is a duplicate if this holds.
    pub(crate) fn duplicate_if(&self, is_known: bool, value: impl Serialize) {
        if is_known {
            self.push(Reason::Duplicate(json!(value)), "");
        }
    }

    /// The value must not be set.
    pub(crate) fn forbidden(&self, detail: impl fmt::Display) {
        self.push(Reason::Forbidden, detail);
    }

    /// The value must not be set if this holds.
    pub(crate) fn forbidden_if(&self, is_wrong: bool, detail: impl fmt::Display) {
        if is_wrong {
            self.forbidden(detail);
        }
    }

    /// The value must be one of these words.
    pub(crate) fn one_of(&self, value: Option<&str>, words: &[&str]) {
        if !value.is_some_and(|value| words.contains(&value)) {
            let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            let detail = format!("supported values: {}", quoted.join(", "));
            self.push(Reason::NotSupported(json!(value)), detail);
        }
    }

    fn push(&self, reason: Reason, detail: impl fmt::Display) {
        let error = FieldError { path: self.path.clone(), reason, detail: detail.to_string() };
        self.errors.borrow_mut().0.push(error);
    }
}
