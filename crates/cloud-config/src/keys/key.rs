//! An entry of the table: the type of a key's value, and its effect.

/// One key.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The documented spelling; documents may use any case.
    pub name: &'static str,
    /// The type of its value.
    pub value_type: ValueType,
    /// The default in words; empty for "not set".
    pub default: &'static str,
    /// Its effect.
    pub effect: Effect,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// A text; numbers and booleans count as their text.
    Text,
    /// A text that is never printed.
    Secret,
    /// `true` or `false` without quotes.
    Boolean,
    /// A whole number without quotes.
    Whole,
    /// A number without quotes.
    Number,
    /// A list.
    List,
    /// A mapping with these keys; others are ignored.
    Mapping(&'static [(&'static str, ValueType)]),
    /// A mapping from any names to such values.
    MapOf(&'static ValueType),
    /// Any value: the key is another program's.
    Any,
}

/// The effect of a key in this release.
#[derive(Debug, Clone, Copy)]
pub enum Effect {
    /// It has this effect, in the words of the documentation.
    Applies(&'static str),
    /// It is accepted and has no effect, for this reason.
    None(&'static str),
}

impl ValueType {
    /// The type in words, for the documentation.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Secret => "text, secret",
            Self::Boolean => "boolean",
            Self::Whole => "integer",
            Self::Number => "number",
            Self::List => "list",
            Self::Mapping(_) | Self::MapOf(_) => "mapping",
            Self::Any => "",
        }
    }
}
