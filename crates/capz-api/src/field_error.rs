//! Validation errors: the path, the reason, and what to do about it.

use std::fmt;

use serde_json::Value;

/// The path of a member, as Kubernetes writes it: `spec.networkSpec.subnets[0].name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// A top-level member of the object.
    pub fn new(member: &str) -> Self {
        Self(member.to_owned())
    }

    /// A member below this one; a name with dots stands for several levels.
    #[must_use]
    pub fn child(&self, member: &str) -> Self {
        Self(format!("{}.{member}", self.0))
    }

    /// An entry of a list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// An entry of a map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

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
    /// The path.
    pub path: Path,
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
    /// A value is missing.
    pub fn required(&mut self, path: &Path, detail: impl fmt::Display) {
        self.push(path, Reason::Required, detail);
    }

    /// A value is invalid.
    pub fn invalid(&mut self, path: &Path, value: impl Into<Value>, detail: impl fmt::Display) {
        self.push(path, Reason::Invalid(value.into()), detail);
    }

    /// A value is a duplicate.
    pub fn duplicate(&mut self, path: &Path, value: impl Into<Value>) {
        self.push(path, Reason::Duplicate(value.into()), "");
    }

    /// A value must not be set.
    pub fn forbidden(&mut self, path: &Path, detail: impl fmt::Display) {
        self.push(path, Reason::Forbidden, detail);
    }

    /// A value is not one of the supported words.
    pub fn not_supported(&mut self, path: &Path, value: impl Into<Value>, words: &[&str]) {
        let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        self.push(
            path,
            Reason::NotSupported(value.into()),
            format_args!("supported values: {}", words.join(", ")),
        );
    }

    fn push(&mut self, path: &Path, reason: Reason, detail: impl fmt::Display) {
        self.0.push(FieldError { path: path.clone(), reason, detail: detail.to_string() });
    }

    /// Whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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
