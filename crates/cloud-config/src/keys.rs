//! Every key that azure.json may hold, as one table: the type of its value, what it does in this release,
//! and, for keys that do nothing, why.
//!
//! The table decides what is read, what [`CloudConfig::warnings`] says, which key a misspelt one is
//! compared with, and what `docs/resources/azure-json.md` tells. A key without effect has no field in
//! [`CloudConfig`].

mod table;

use crate::CloudConfig;

pub use table::KEYS;

/// One key.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The documented spelling; documents may use any case.
    pub name: &'static str,
    /// What a value must look like.
    pub value_type: ValueType,
    /// The default in words; empty for "not set".
    pub default: &'static str,
    /// What it does.
    pub effect: Effect,
}

/// What a value must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// A text; numbers and booleans count as their text.
    Text,
    /// A text that is never printed.
    Secret,
    /// One of these words, whatever their case.
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
    /// Anything: the key is another program's.
    Any,
}

/// What a key does in this release.
#[derive(Debug, Clone, Copy)]
pub enum Effect {
    /// It changes what the program does.
    Applies {
        /// What it does, for the documentation.
        what: &'static str,
        /// Its value; the default where it is not set, unless that is another key's value.
        value: fn(&CloudConfig) -> String,
    },
    /// It is accepted and does nothing, for this reason.
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

/// The entry of a key, whatever its case.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name.eq_ignore_ascii_case(name))
}

/// The known name that a misspelt one is nearest to, if one is near: at most a third of its letters, and
/// never more than three, differ (counted as insertions, deletions and replacements, case aside).
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
