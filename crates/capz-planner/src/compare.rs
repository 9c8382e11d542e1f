//! One comparison for all kinds: the observed state must contain the desired state. Everything else is not ours:
//! members, tags and named items of other writers stay.
//!
//! * Objects are compared member by member, lists of named items by name, other lists as sets.
//! * IDs, locations and words are compared without regard to case, since Azure changes it.
//! * Exceptions for single members are a [`Rule`] of the kind.

use std::fmt;

use serde_json::{Map, Value};

use crate::kind::{Kind, Rule};
use crate::references::remove;

/// One difference.
#[derive(Clone, PartialEq)]
pub struct Change {
    /// The path, in a readable form: `securityRules[allow_ssh].priority`.
    pub at: String,
    /// The observed value; `None` if it is absent.
    pub from: Option<Value>,
    /// The desired value; `None` if it is removed.
    pub to: Option<Value>,
    /// Whether the values must not be shown.
    pub secret: bool,
}

impl Change {
    /// The difference of a member that is not written.
    pub fn kept(&self) -> String {
        match (&self.from, &self.to) {
            (Some(from), Some(to)) if !self.secret => {
                format!("{} stays {}, and {} is declared", self.at, short(from), short(to))
            }
            _ => format!("{} differs", self.at),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = &self.at;
        match (&self.from, &self.to) {
            _ if self.secret => write!(f, "{at} differs"),
            (None, Some(to)) => write!(f, "{at} is missing: {}", short(to)),
            (Some(from), None) => write!(f, "{at} is no longer declared: {}", short(from)),
            (Some(from), Some(to)) => write!(f, "{at}: {} becomes {}", short(from), short(to)),
            (None, None) => f.write_str(at),
        }
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An item that we applied before and that is no longer desired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Withdrawn {
    /// An item of a list, by its name. The list is named by its path, such as `properties/securityRules`.
    Item {
        /// The list.
        list: &'static str,
        /// The item.
        name: String,
    },
    /// A tag, which is removed if it still has the applied value.
    Tag {
        /// Its key.
        key: String,
        /// Its value.
        value: String,
    },
    /// A member of an object, such as a label of nodes. The object is named by its path, such as
    /// `properties/nodeLabels`.
    Member {
        /// The object.
        within: &'static str,
        /// The member.
        name: String,
    },
    /// A member that a user declared, by its JSON pointer.
    Declared(String),
    /// The items of a list, by its JSON pointer, except those that are declared: the declaration had others.
    Items(String),
}

/// A value for a sentence, abbreviated if it is long.
fn short(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(members) => match members.get("name").and_then(Value::as_str) {
            Some(name) => name.to_owned(),
            None => match members.values().next() {
                Some(only) if members.len() == 1 => short(only),
                _ => format!("{} members", members.len()),
            },
        },
        other => {
            let text = other.to_string();
            if text.chars().count() > 60 {
                format!("{}…", text.chars().take(60).collect::<String>())
            } else {
                text
            }
        }
    }
}

/// Merges the desired state into the observed state. Returns the document to write and the changes in it; without
/// changes nothing has to be written.
pub fn merge(kind: &Kind, wanted: &Value, held: &Value, withdrawn: &[Withdrawn]) -> (Value, Vec<Change>) {
    let mut merged = held.clone();
    for (path, _) in kind.rules.iter().filter(|(_, rule)| *rule == Rule::Apart) {
        remove(&mut merged, path);
    }
    let mut merger = Merger { kind, at_creation: false, changes: Vec::new() };
    merger.value(&mut Vec::new(), "", wanted, &mut merged);
    for gone in withdrawn {
        merger.withdraw(gone, wanted, &mut merged);
    }
    (merged, merger.changes)
}

/// Differences between the written and the observed document, including members that count only at creation.
pub fn differences(kind: &Kind, written: &Value, held: &Value) -> Vec<Change> {
    let mut merger = Merger { kind, at_creation: true, changes: Vec::new() };
    merger.value(&mut Vec::new(), "", written, &mut held.clone());
    merger.changes.retain(|change| change.from.is_some());
    merger.changes
}

/// Differences between the desired and the observed document in members that count only at creation: they are not
/// written. A number that is 0 leaves the choice to Azure.
pub fn fixed(kind: &Kind, wanted: &Value, held: &Value) -> Vec<Change> {
    let mut wanted = wanted.clone();
    for (path, _) in kind.rules.iter().filter(|(_, rule)| *rule == Rule::Apart) {
        remove(&mut wanted, path);
    }
    let (_, written) = merge(kind, &wanted, held, &[]);
    let mut all = differences(kind, &wanted, held);
    all.retain(|change| {
        let is_choice = change.to.as_ref().is_none_or(|to| to.is_null() || to == "" || *to == 0);
        !is_choice && written.iter().all(|other| other.at != change.at)
    });
    all
}

struct Merger<'a> {
    kind: &'a Kind,
    /// Whether members that count only at creation are compared, too.
    at_creation: bool,
    changes: Vec<Change>,
}

impl Merger<'_> {
    /// The path of a member that may be removed: not of one that counts at creation only, or that others write.
    fn withdrawable(&self, pointer: &str) -> Option<Vec<String>> {
        let segments = pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~"));
        let segments: Vec<String> = segments.collect();
        let is_fixed = (1..=segments.len()).any(|length| {
            let path: Vec<&str> = segments.iter().take(length).map(String::as_str).collect();
            matches!(self.kind.rule(&path), Some(Rule::AtCreation | Rule::Apart))
        });
        (!is_fixed).then_some(segments)
    }

    fn change(&mut self, segments: &[&str], at: &str, from: Option<Value>, to: Option<Value>) {
        let secret = self.kind.is_secret(segments);
        self.changes.push(Change { at: at.to_owned(), from, to, secret });
    }

    fn value<'w>(&mut self, segments: &mut Vec<&'w str>, at: &str, wanted: &'w Value, held: &mut Value) {
        let rule = self.kind.rule(segments);
        match (wanted, &mut *held) {
            _ if rule == Some(Rule::AtCreation) && !self.at_creation => return,
            (Value::Object(wanted), Value::Object(held)) if rule != Some(Rule::Whole) => {
                return self.members(segments, at, wanted, held);
            }
            (Value::Array(wanted), Value::Array(held)) if rule != Some(Rule::Whole) => {
                segments.push("*");
                for item in wanted {
                    self.item(segments, at, item, held);
                }
                segments.pop();
                return;
            }
            _ => {}
        }
        let same = match (wanted, &*held) {
            (Value::Array(wanted), Value::Array(held)) => {
                wanted.len() == held.len()
                    && wanted.iter().all(|item| held.iter().any(|other| is_contained(item, other)))
            }
            (Value::Object(_), Value::Object(_)) => is_contained(wanted, held),
            // The values of tags are compared exactly.
            _ if segments.first() == Some(&"tags") => *wanted == *held,
            _ => is_same(wanted, held),
        };
        if !same {
            self.change(segments, at, Some(held.clone()), Some(wanted.clone()));
            *held = wanted.clone();
        }
    }

    fn members<'w>(
        &mut self,
        segments: &mut Vec<&'w str>,
        at: &str,
        wanted: &'w Map<String, Value>,
        held: &mut Map<String, Value>,
    ) {
        for (name, wanted) in wanted {
            let at = match at {
                // `properties` is left out of paths in messages.
                at if name == "properties" => at.to_owned(),
                "" => name.clone(),
                at => format!("{at}.{name}"),
            };
            segments.push(name);
            // Keys of tags are not case-sensitive, and Azure keeps the existing spelling.
            let known = held.keys().find(|key| key.eq_ignore_ascii_case(name)).cloned();
            match known.and_then(|key| held.get_mut(&key)) {
                Some(held) if !held.is_null() => self.value(segments, &at, wanted, held),
                _ if is_empty(wanted) || self.kind.rule(segments) == Some(Rule::AtCreation) => {}
                // An empty value equals an absent one, except for tags.
                _ if wanted == "" && segments.first() != Some(&"tags") => {}
                _ => {
                    self.change(segments, &at, None, Some(wanted.clone()));
                    held.insert(name.clone(), wanted.clone());
                }
            }
            segments.pop();
        }
    }

    fn item<'w>(&mut self, segments: &mut Vec<&'w str>, at: &str, wanted: &'w Value, held: &mut Vec<Value>) {
        let key = key_of(wanted);
        let at = match key {
            Some(key) => format!("{at}[{}]", key.rsplit('/').next().unwrap_or(key)),
            None => format!("{at}[]"),
        };
        let found = match key {
            Some(key) => {
                held.iter_mut().find(|item| key_of(item).is_some_and(|it| it.eq_ignore_ascii_case(key)))
            }
            None => held.iter_mut().find(|item| is_contained(wanted, item)),
        };
        match found {
            Some(held) => self.value(segments, &at, wanted, held),
            None => {
                self.change(segments, &at, None, Some(wanted.clone()));
                held.push(wanted.clone());
            }
        }
    }

    fn withdraw(&mut self, gone: &Withdrawn, wanted: &Value, document: &mut Value) {
        match gone {
            Withdrawn::Declared(pointer) => {
                let Some(segments) = self.withdrawable(pointer) else { return };
                let Some(from) = remove_member(document, &segments) else { return };
                let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
                self.change(&segments, &readable(&segments), Some(from), None);
            }
            Withdrawn::Items(pointer) => {
                let Some(segments) = self.withdrawable(pointer) else { return };
                let Some(wanted) = wanted.pointer(pointer).and_then(Value::as_array) else { return };
                let Some(items) = document.pointer_mut(pointer).and_then(Value::as_array_mut) else { return };
                let is_declared = |item: &Value| {
                    wanted.iter().any(|wanted| match key_of(wanted) {
                        Some(key) => key_of(item).is_some_and(|it| it.eq_ignore_ascii_case(key)),
                        None => is_contained(wanted, item),
                    })
                };
                let (kept, gone) = std::mem::take(items).into_iter().partition(is_declared);
                *items = kept;
                let mut segments: Vec<&str> = segments.iter().map(String::as_str).collect();
                let at = readable(&segments);
                segments.push("*");
                let gone: Vec<Value> = gone;
                for item in gone {
                    let at = format!("{at}[{}]", key_of(&item).unwrap_or_default());
                    self.change(&segments, &at, Some(item), None);
                }
            }
            Withdrawn::Tag { key, value } => {
                let Some(tags) = document.get_mut("tags").and_then(Value::as_object_mut) else { return };
                // A tag with another value belongs to another writer by now.
                let is_ours = |(known, held): &(&String, &Value)| {
                    known.eq_ignore_ascii_case(key) && held.as_str() == Some(value)
                };
                let Some(known) = tags.iter().find(is_ours).map(|(known, _)| known.clone()) else { return };
                let from = tags.remove(&known);
                self.change(&["tags"], &format!("tags.{known}"), from, None);
            }
            Withdrawn::Member { within, name } => {
                let Some(members) =
                    document.pointer_mut(&format!("/{within}")).and_then(Value::as_object_mut)
                else {
                    return;
                };
                let Some(from) = members.remove(name) else { return };
                let segments: Vec<&str> = within.split('/').chain([name.as_str()]).collect();
                let at = match within.strip_prefix("properties").map(|rest| rest.trim_start_matches('/')) {
                    Some("") => name.clone(),
                    Some(inner) => format!("{}.{name}", inner.replace('/', ".")),
                    None => format!("{within}.{name}"),
                };
                self.change(&segments, &at, Some(from), None);
            }
            Withdrawn::Item { list, name } => {
                let Some(items) = document.pointer_mut(&format!("/{list}")).and_then(Value::as_array_mut)
                else {
                    return;
                };
                let Some(at) = items
                    .iter()
                    .position(|item| key_of(item).is_some_and(|key| key.eq_ignore_ascii_case(name)))
                else {
                    return;
                };
                let from = items.remove(at);
                let segments: Vec<&str> = list.split('/').chain(["*"]).collect();
                let list = list.strip_prefix("properties/").unwrap_or(list);
                self.change(&segments, &format!("{list}[{name}]"), Some(from), None);
            }
        }
    }
}

/// Removes a member, and the objects that are empty without it. Names are compared without regard to case.
fn remove_member(object: &mut Value, segments: &[String]) -> Option<Value> {
    let (name, rest) = segments.split_first()?;
    let members = object.as_object_mut()?;
    let known = members.keys().find(|key| key.eq_ignore_ascii_case(name)).cloned()?;
    if rest.is_empty() {
        return members.remove(&known).filter(|from| !from.is_null());
    }
    let inner = members.get_mut(&known)?;
    let from = remove_member(inner, rest);
    if from.is_some() && inner.as_object().is_some_and(Map::is_empty) {
        members.remove(&known);
    }
    from
}

/// A path for people: without `properties`.
fn readable(segments: &[&str]) -> String {
    let named: Vec<&str> = segments.iter().copied().filter(|name| *name != "properties").collect();
    named.join(".")
}

/// The key of an item in a list: its name, otherwise its ID.
fn key_of(item: &Value) -> Option<&str> {
    item.get("name").or_else(|| item.get("id")).and_then(Value::as_str)
}

/// Whether a value is empty: Azure leaves such members out.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        _ => false,
    }
}

fn is_same(wanted: &Value, held: &Value) -> bool {
    match (wanted, held) {
        (Value::String(wanted), Value::String(held)) => wanted.eq_ignore_ascii_case(held),
        // Azure returns locations as `eastus` and as `East US`, numbers as numbers and as texts.
        (Value::Number(wanted), Value::String(held)) => wanted.to_string() == *held,
        (Value::String(wanted), Value::Number(held)) => *wanted == held.to_string(),
        _ => wanted == held,
    }
}

/// Whether `held` contains everything in `wanted`.
fn is_contained(wanted: &Value, held: &Value) -> bool {
    match (wanted, held) {
        (Value::Object(wanted), Value::Object(held)) => wanted.iter().all(|(name, value)| {
            match held.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)) {
                Some((_, held)) => is_contained(value, held),
                None => is_empty(value),
            }
        }),
        (Value::Array(wanted), Value::Array(held)) => {
            wanted.iter().all(|item| held.iter().any(|other| is_contained(item, other)))
        }
        _ => is_same(wanted, held),
    }
}
