//! What is wrong with an object: where, how, and what to do about it.

use std::fmt;

use serde_json::Value;

/// A place in an object, as Kubernetes writes it: `spec.networkSpec.subnets[0].name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// A member of the object.
    pub fn new(member: &str) -> Self {
        Self(member.to_owned())
    }

    /// A member below this one; several at once with dots between them.
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

/// In which way a value is wrong; the names are those of a Status' causes.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// There is none.
    Required,
    /// It does not fit.
    Invalid(Value),
    /// It is one of several that must differ.
    Duplicate(Value),
    /// It must not be there.
    Forbidden,
    /// It is none of the words that fit.
    NotSupported(Value),
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// Where.
    pub path: Path,
    /// In which way.
    pub reason: Reason,
    /// Why, and what to do.
    pub detail: String,
}

impl FieldError {
    /// The reason as a Status' cause names it.
    pub fn cause(&self) -> &'static str {
        match self.reason {
            Reason::Required => "FieldValueRequired",
            Reason::Invalid(_) => "FieldValueInvalid",
            Reason::Duplicate(_) => "FieldValueDuplicate",
            Reason::Forbidden => "FieldValueForbidden",
            Reason::NotSupported(_) => "FieldValueNotSupported",
        }
    }

    /// What is wrong, without the place, as a Status' cause says it beside the place.
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

/// All that is wrong with an object, in the order in which it was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldErrors(pub Vec<FieldError>);

impl FieldErrors {
    /// A value is missing.
    pub fn required(&mut self, path: &Path, detail: impl fmt::Display) {
        self.push(path, Reason::Required, detail);
    }

    /// A value does not fit.
    pub fn invalid(&mut self, path: &Path, value: impl Into<Value>, detail: impl fmt::Display) {
        self.push(path, Reason::Invalid(value.into()), detail);
    }

    /// A value is there twice.
    pub fn duplicate(&mut self, path: &Path, value: impl Into<Value>) {
        self.push(path, Reason::Duplicate(value.into()), "");
    }

    /// A value must not be there.
    pub fn forbidden(&mut self, path: &Path, detail: impl fmt::Display) {
        self.push(path, Reason::Forbidden, detail);
    }

    /// A value is none of those that fit.
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

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, as a Status' message lists them.
    pub fn message(&self) -> String {
        let errors: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        match errors.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        }
    }
}
