//! What is harmless but perhaps not meant. The program logs each once.

use std::fmt;

use crate::keys::{self, Effect, KEYS, nearest};

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// Nobody knows this key.
    Unknown {
        /// As written.
        key: String,
        /// The known key that it may be meant to be.
        nearest: Option<&'static str>,
    },
    /// The key stands there in another spelling, too, which counts.
    Shadowed {
        /// The spelling that does not count.
        key: String,
    },
    /// A piece of `tags` is no pair.
    NotAPair {
        /// The piece.
        piece: String,
    },
    /// A value that is none of those that the key takes. Something else counts in its place.
    Instead {
        /// As documented.
        key: &'static str,
        /// As written.
        value: String,
        /// What counts, and what to write.
        reason: &'static str,
    },
    /// Keys that are set and do nothing here.
    NoEffect {
        /// As documented.
        keys: Vec<&'static str>,
        /// Why.
        reason: &'static str,
    },
}

impl Warning {
    pub(crate) fn unknown(key: String) -> Self {
        let nearest = nearest(&key, KEYS.iter().map(|known| known.name));
        Self::Unknown { key, nearest }
    }

    /// The keys that are set and do nothing, by reason.
    pub(crate) fn no_effect(set: &[&'static str]) -> Vec<Self> {
        let mut warnings: Vec<Self> = Vec::new();
        for name in set {
            let Some(Effect::None(why)) = keys::find(name).map(|key| key.effect) else { continue };
            let known = warnings.iter_mut().find_map(|warning| match warning {
                Self::NoEffect { keys, reason } if *reason == why => Some(keys),
                _ => None,
            });
            match known {
                Some(keys) => keys.push(name),
                None => warnings.push(Self::NoEffect { keys: vec![name], reason: why }),
            }
        }
        warnings
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { key, nearest: Some(nearest) } => {
                write!(f, "{key}: unknown key, ignored; did you mean {nearest}?")
            }
            Self::Unknown { key, nearest: None } => write!(f, "{key}: unknown key, ignored"),
            Self::Shadowed { key } => {
                write!(f, "{key}: ignored, because the key stands there in another spelling, too")
            }
            Self::NotAPair { piece } => write!(f, "tags: {piece:?} is no key=value pair and is ignored"),
            Self::Instead { key, value, reason } => write!(f, "{key}={value}: {reason}"),
            Self::NoEffect { keys, reason } => write!(f, "{}: no effect: {reason}", keys.join(", ")),
        }
    }
}
