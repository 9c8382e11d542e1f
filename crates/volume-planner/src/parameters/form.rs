//! The forms of values: what is allowed, in words and as a check.

/// The form of a parameter's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Any text.
    Text,
    /// One of these words, in exact case.
    OneOf(&'static [&'static str]),
    /// One of these words, in any case.
    AnyCase(&'static [&'static str]),
    /// A whole number in this range.
    Whole {
        /// The least.
        min: u64,
        /// The greatest.
        max: u64,
    },
    /// `true` or `false`, or the other spellings that Go's programs take.
    Boolean,
    /// `true`; any other value has no effect.
    OnlyTrue,
    /// `false`; any other value has no effect.
    OnlyFalse,
    /// The ID of a resource.
    ResourceId,
}

/// A boolean as `strconv.ParseBool` reads it.
pub fn boolean(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

impl Form {
    /// Whether a value has the form.
    pub fn admits(self, value: &str) -> bool {
        match self {
            Self::Text | Self::OnlyTrue | Self::OnlyFalse => true,
            Self::OneOf(words) => words.contains(&value),
            Self::AnyCase(words) => words.iter().any(|word| word.eq_ignore_ascii_case(value)),
            Self::Whole { min, max } => value.parse().is_ok_and(|number: u64| (min..=max).contains(&number)),
            Self::Boolean => boolean(value).is_some(),
            Self::ResourceId => azure_types::ResourceId::is_valid(value),
        }
    }

    /// The allowed values in words, for messages.
    pub fn words(self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
            Self::AnyCase(words) => format!("one of {} in any case", words.join(", ")),
            Self::Whole { min, max: u64::MAX } => format!("a whole number of at least {min}"),
            Self::Whole { min, max } => format!("a whole number from {min} to {max}"),
            Self::Boolean => "true or false".to_owned(),
            Self::OnlyTrue => "true (anything else has no effect)".to_owned(),
            Self::OnlyFalse => "false (anything else has no effect)".to_owned(),
            Self::ResourceId => "the ID of a resource of Azure, which begins with /subscriptions/".to_owned(),
        }
    }

    /// The allowed values for a table of Markdown.
    pub fn markdown(self) -> String {
        match self {
            Self::OneOf(words) => code(words),
            Self::AnyCase(words) => format!("{}, in any case", code(words)),
            Self::Boolean => code(&["true", "false"]),
            Self::OnlyTrue => "`true`; others have no effect".to_owned(),
            Self::OnlyFalse => "`false`; others have no effect".to_owned(),
            other => other.words(),
        }
    }
}

fn code(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
