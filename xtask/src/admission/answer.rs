//! An API server's answers to cases, and their form in a table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// An API server's answer to a case.
#[derive(Debug, Clone)]
pub enum Answer {
    /// The object is accepted, and its specification becomes this.
    Taken(Value),
    /// The object is refused.
    Refused { code: u16, message: String },
    /// The object's previous state is already refused.
    NoBefore,
}

/// The field and the kind of an error, as servers write both.
static PLACE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"([A-Za-z][A-Za-z0-9]*(?:\.[A-Za-z0-9]+|\[[^\]\s]+\])*): ",
        "(Required value|Invalid value|Duplicate value|Forbidden|Unsupported value|Too long|Too many)",
    ))
    .ok()
});

impl Answer {
    /// The fields with errors, without duplicates.
    fn places(message: &str) -> BTreeSet<String> {
        let found = PLACE.as_ref().map(|place| place.captures_iter(message));
        found.into_iter().flatten().map(|found| format!("{}: {}", &found[1], &found[2])).collect()
    }

    /// Whether the object is accepted.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Taken(_))
    }
}

/// One line for tables: `ok` with a fingerprint of the specification, or the fields with errors.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken(spec) => write!(f, "ok {:08x}", fingerprint(spec)),
            Self::Refused { code, message } => {
                let places: Vec<String> = Self::places(message).into_iter().collect();
                let places = if places.is_empty() { "in words".to_owned() } else { places.join(", ") };
                write!(f, "{code} {places}")
            }
            Self::NoBefore => f.write_str("no before"),
        }
    }
}

/// The agreement of two lines of [`Answer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// They are equal.
    Same,
    /// Both refuse, with the same status and for the same members, one of which is named more precisely or differently.
    InOtherWords,
    /// They differ.
    None,
}

/// Compares our answer with the recorded one.
pub fn agreement(ours: &str, theirs: &str) -> Agreement {
    if ours == theirs {
        return Agreement::Same;
    }
    let (Some((our_code, ours)), Some((their_code, theirs))) = (ours.split_once(' '), theirs.split_once(' '))
    else {
        return Agreement::None;
    };
    let refused = our_code.starts_with('4') && our_code == their_code;
    let members = |places: &str| -> Vec<Vec<String>> {
        let places = places.split(", ").filter_map(|place| place.rsplit_once(": "));
        places.map(|(path, _)| segments(path)).collect()
    };
    let (ours, theirs) = (members(ours), members(theirs));
    let corresponds = |a: &[String], b: &[String]| {
        a.last().is_some_and(|last| b.contains(last)) || b.last().is_some_and(|last| a.contains(last))
    };
    let all = theirs.iter().all(|their| ours.iter().any(|our| corresponds(our, their)));
    if refused && all { Agreement::InOtherWords } else { Agreement::None }
}

/// The names in a path, in lower case and without numbers: the established provider does not care about case.
fn segments(path: &str) -> Vec<String> {
    path.split('.').map(|part| part.split('[').next().unwrap_or_default().to_lowercase()).collect()
}

/// FNV-1a over the document with its members in order.
fn fingerprint(spec: &Value) -> u32 {
    let text = written(spec);
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn written(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<&String, String> =
                members.iter().map(|(name, value)| (name, written(value))).collect();
            format!("{sorted:?}")
        }
        Value::Array(entries) => format!("{:?}", entries.iter().map(written).collect::<Vec<_>>()),
        other => other.to_string(),
    }
}

/// The specification in comparable form: without empty and without random values.
pub fn comparable(sent: &Value, spec: &Value) -> Value {
    let mut spec = spec.clone();
    forget_random("spec", sent, &mut spec);
    without_empty(spec).unwrap_or_default()
}

fn forget_random(name: &str, sent: &Value, value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (member, value) in members {
                let random =
                    member == "sshPublicKey" || (name == "systemAssignedIdentityRole" && member == "name");
                let given = sent.get(member).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
                if random && !given {
                    *value = Value::from("drawn");
                } else {
                    forget_random(member, &sent[member.as_str()], value);
                }
            }
        }
        Value::Array(entries) => {
            for (index, entry) in entries.iter_mut().enumerate() {
                forget_random(name, &sent[index], entry);
            }
        }
        _ => {}
    }
}

fn without_empty(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::Object(members) => {
            let kept: serde_json::Map<String, Value> = members
                .into_iter()
                .filter_map(|(name, value)| without_empty(value).map(|value| (name, value)))
                // The established provider writes an absent port as 0.
                .filter(|(name, value)| !(name == "port" && *value == 0))
                .collect();
            (!kept.is_empty()).then(|| kept.into())
        }
        Value::Array(entries) if entries.is_empty() => None,
        // An empty entry keeps its position.
        Value::Array(entries) => {
            let empty = || Value::Object(serde_json::Map::new());
            Some(entries.into_iter().map(|entry| without_empty(entry).unwrap_or_else(empty)).collect())
        }
        other => Some(other),
    }
}
