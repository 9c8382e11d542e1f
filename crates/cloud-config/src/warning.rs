//! Harmless but probably unintended settings. The program logs each once.

use std::fmt;

use crate::keys::{self, Effect, KEYS, nearest};

/// A warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// The key is unknown.
    Unknown {
        /// As written.
        key: String,
        /// The most similar known key.
        nearest: Option<&'static str>,
    },
    /// The key also exists in another spelling, which takes precedence.
    Shadowed {
        /// The spelling that is ignored.
        key: String,
    },
    /// A piece of `tags` is not a pair.
    NotAPair {
        /// The piece.
        piece: String,
    },
    /// A value that the key does not support. Another one is used instead.
    Instead {
        /// As documented.
        key: &'static str,
        /// As written.
        value: String,
        /// The value that is used, and what to write.
        reason: &'static str,
    },
    /// Keys that are set and have no effect.
    NoEffect {
        /// As documented.
        keys: Vec<&'static str>,
        /// The reason.
        reason: &'static str,
    },
}

impl Warning {
    pub(crate) fn unknown(key: String) -> Self {
        let nearest = nearest(&key, KEYS.iter().map(|known| known.name));
        Self::Unknown { key, nearest }
    }

    /// The keys that are set and have no effect, by reason.
    pub(crate) fn no_effect(set: &[&'static str]) -> Vec<Self> {
        let mut warnings: Vec<Self> = Vec::new();
        for name in set {
            let Some(Effect::None(why)) = keys::find(name).map(|key| key.effect) else { continue };
            let same_reason = warnings.iter_mut().find_map(|warning| match warning {
                Self::NoEffect { keys, reason } if *reason == why => Some(keys),
                _ => None,
            });
            match same_reason {
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
                write!(f, "{key}: ignored, because the key also exists in another spelling")
            }
            Self::NotAPair { piece } => write!(f, "tags: {piece:?} is not a key=value pair and is ignored"),
            Self::Instead { key, value, reason } => write!(f, "{key}={value}: {reason}"),
            Self::NoEffect { keys, reason } => write!(f, "{}: no effect: {reason}", keys.join(", ")),
        }
    }
}
