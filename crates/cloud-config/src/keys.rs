//! The table of all keys of azure.json: the type of the value, the effect in this release, and, for keys without an
//! effect, the reason.
//!
//! The table decides which keys are read, the output of [`CloudConfig::warnings`], the candidates for a misspelt key,
//! and the content of `docs/resources/azure-json.md`. A key without effect has no field in [`CloudConfig`].

mod table;

use crate::CloudConfig;

pub use table::KEYS;

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
    /// One of these words, without regard to case.
    Word(&'static [&'static str]),
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
    /// It has an effect.
    Applies {
        /// The effect, for the documentation.
        what: &'static str,
        /// Its value; the default if it is not set, unless the default is another key's value.
        value: fn(&CloudConfig) -> String,
    },
    /// It is accepted and has no effect, for this reason.
    None(&'static str),
}

impl ValueType {
    /// The type in words, for the documentation.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Text | Self::Word(_) => "text",
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

/// The entry of a key, without regard to case.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name.eq_ignore_ascii_case(name))
}

/// The known name that is most similar to a misspelt one, if it is similar enough: at most a third of its letters, and
/// never more than three, differ (counted as insertions, deletions and replacements, without regard to case).
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).min(3);
    names
        .into_iter()
        .map(|name| (distance(&word.to_ascii_lowercase(), &name.to_ascii_lowercase()), name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_finds_the_one_it_was_meant_to_be() {
        let names = ["vmType", "vnetName", "loadBalancerSku", "location"];
        for (word, found) in [
            ("loadBalancerSKU", Some("loadBalancerSku")),
            ("loadbalancersku", Some("loadBalancerSku")),
            ("loadBalancersSku", Some("loadBalancerSku")),
            ("vnetname", Some("vnetName")),
            ("vnName", Some("vnetName")),
            ("subnet", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, names), found, "{word}");
        }
    }

    #[test]
    fn no_key_stands_twice_in_the_table() {
        let mut names: Vec<String> = KEYS.iter().map(|key| key.name.to_ascii_lowercase()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), KEYS.len());
    }
}
