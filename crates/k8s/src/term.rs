//! Words that occur in thousands of objects.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

use crate::names;

/// A word of Kubernetes' vocabulary, such as a condition's status. The usual ones take no memory of their own; others
/// are kept unchanged.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Term(Cow<'static, str>);

/// The words in the statuses of nodes.
const USUAL: [&str; 15] = [
    "InternalIP",
    "ExternalIP",
    "Hostname",
    "InternalDNS",
    "ExternalDNS",
    "True",
    "False",
    "Unknown",
    "NoSchedule",
    "PreferNoSchedule",
    "NoExecute",
    "",
    names::CONDITION_READY,
    names::CONDITION_NETWORK_UNAVAILABLE,
    names::CONDITION_VM_EVENT_SCHEDULED,
];

impl Term {
    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Term {
    fn from(word: &str) -> Self {
        let usual = USUAL.into_iter().find(|usual| *usual == word);
        Self(usual.map_or_else(|| Cow::Owned(word.to_owned()), Cow::Borrowed))
    }
}

impl Deref for Term {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Term {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Term {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Term {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Word;

        impl Visitor<'_> for Word {
            type Value = Term;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E>(self, word: &str) -> Result<Term, E> {
                Ok(word.into())
            }
        }

        deserializer.deserialize_str(Word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NODE-287
    #[test]
    fn node_287_usual_words_are_not_copied_and_others_are_kept() {
        for word in USUAL.into_iter().chain(["ready", "InternalIp", "Something"]) {
            let term: Term = serde_json::from_value(word.into()).unwrap();
            assert_eq!(term, word);
            assert_eq!(serde_json::to_value(&term).unwrap(), word);
            assert_eq!(matches!(term.0, Cow::Borrowed(_)), USUAL.contains(&word));
        }
        assert!(serde_json::from_value::<Term>(1.into()).is_err());
    }
}
